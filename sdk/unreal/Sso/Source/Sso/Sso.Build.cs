using System.IO;
using UnrealBuildTool;

public class Sso : ModuleRules
{
	public Sso(ReadOnlyTargetRules Target) : base(Target)
	{
		// The sources of the C++ library are compiled as they are, each by itself, without headers of the engine before them.
		PCHUsage = PCHUsageMode.NoPCHs;
		bUseUnity = false;
		PublicDependencyModuleNames.AddRange(new string[] { "Core", "CoreUObject", "Engine" });
		AddEngineThirdPartyPrivateStaticDependencies(Target, "libcurl", "OpenSSL");

		string Library = Path.Combine(ModuleDirectory, "Private", "Library");
		if (!Directory.Exists(Library))
		{
			throw new BuildException("Sso: Private/Library is missing. Take the plugin that sdk/unreal/pack writes.");
		}
		PrivateIncludePaths.Add(Path.Combine(Library, "include"));
		PrivateIncludePaths.Add(Path.Combine(Library, "src"));
	}
}
