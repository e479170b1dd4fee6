// Runs the tests of the package without Unity, and draws QR codes: Runner.exe [TEXT].
using System;
using System.Linq;
using System.Reflection;
using Sso;

namespace NUnit.Framework
{
    [AttributeUsage(AttributeTargets.Method)]
    public sealed class TestAttribute : Attribute { }

    /// <summary>As much of NUnit as the tests use.</summary>
    public static class Assert
    {
        public static void AreEqual(object expected, object found) => IsTrue(Equals(expected, found), "expected " + expected + ", found " + found);
        public static void IsNull(object found) => IsTrue(found == null, "found " + found);
        public static void IsFalse(bool found) => IsTrue(!found, "found true");
        public static void IsTrue(bool found, string message = "found false")
        {
            if (!found) throw new InvalidOperationException(message);
        }
    }
}

internal static class Runner
{
    private static int Main(string[] arguments)
    {
        if (arguments.Length == 1) return Draw(QrCode.Of(arguments[0]));
        Run(new StorageTests());
        Run(new GameTests());
        return 0;
    }

    private static void Run(object tests)
    {
        foreach (MethodInfo test in tests.GetType().GetMethods().Where(method => method.IsDefined(typeof(NUnit.Framework.TestAttribute))))
        {
            test.Invoke(tests, null);
            Console.WriteLine(test.Name);
        }
    }

    private static int Draw(QrCode code)
    {
        for (int y = 0; code != null && y < code.Size; y++)
        {
            Console.WriteLine(string.Concat(Enumerable.Range(0, code.Size).Select(x => code[x, y] ? "1" : "0")));
        }
        return 0;
    }
}
