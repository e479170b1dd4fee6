#pragma once

#include <atomic>
#include <memory>

#include "Async/Future.h"
#include "CoreMinimal.h"
#include "SsoTypes.h"
#include "Subsystems/GameInstanceSubsystem.h"

#include "SsoSubsystem.generated.h"

class UTexture2D;

namespace sso
{
class Game;
}

/**
 * Signs the player of this game instance in. Requests run on threads of their own; everything is reported on the game thread.
 *
 * DefaultGame.ini has the address of the service:
 *
 *   [/Script/Sso.SsoSubsystem]
 *   BaseUrl=https://sso.example.com
 */
UCLASS(Config = Game)
class SSO_API USsoSubsystem : public UGameInstanceSubsystem
{
	GENERATED_BODY()

public:
	/** The address of the service. */
	UPROPERTY(Config, BlueprintReadWrite, Category = "Sso")
	FString BaseUrl;

	/** The application whose permissions the game asks for. */
	UPROPERTY(Config, BlueprintReadWrite, Category = "Sso")
	int64 ApplicationId = 0;

	/** A name of this device, which belongs to each user JWT. Empty: a random one, which is stored. */
	UPROPERTY(BlueprintReadWrite, Category = "Sso")
	FString Factor;

	/** Encrypts what is stored, if the game sets it before the first request. */
	UPROPERTY(BlueprintReadWrite, Category = "Sso")
	FString EncryptionKey;

	/** Where the sign-in and the key of the guest are stored. Empty: Sso in the folder for saved files. */
	UPROPERTY(BlueprintReadWrite, Category = "Sso")
	FString Folder;

	/** A PEM file with certificate authorities, where libcurl does not find those of the system. */
	UPROPERTY(Config, BlueprintReadWrite, Category = "Sso")
	FString CertificateFile;

	/** Signs the player in. One sign-in runs at a time. */
	void SignIn(const FSsoRequest& Request, FSsoCallbacks Callbacks);

	/** Asks whether the player may do something. */
	void Check(int64 Application, const FString& Rule, TFunction<void(bool bAllow)> Checked, TFunction<void(const FSsoFailure&)> Failed);

	/** Ends a sign-in that runs: the player gave up. */
	UFUNCTION(BlueprintCallable, Category = "Sso")
	void Cancel();

	/** Forgets the player, here at once and at the service soon after, and ends a sign-in that runs. The key of the guest
	 * stays. */
	UFUNCTION(BlueprintCallable, Category = "Sso")
	void SignOut() { SignOutThen(nullptr); }

	/** The same; the callback follows when the service was told, or cannot be reached. */
	void SignOutThen(TFunction<void()> SignedOut);

	UFUNCTION(BlueprintPure, Category = "Sso")
	bool IsSignedIn() const { return !Player.UserId.IsEmpty(); }

	UFUNCTION(BlueprintPure, Category = "Sso")
	FSsoPlayer GetPlayer() const { return Player; }

	/** Opens the link of a sign-in in the browser. */
	UFUNCTION(BlueprintCallable, Category = "Sso")
	static void OpenLink(const FString& Url);

	/** Draws the link of a sign-in as a QR code, one pixel per module with its margin. Null if the link is too long. */
	UFUNCTION(BlueprintCallable, Category = "Sso")
	static UTexture2D* MakeQrCode(const FString& Url);

	virtual void Deinitialize() override;

private:
	std::shared_ptr<sso::Game> OpenGame();
	void Run(TFunction<void(sso::Game&)> Work);
	void Report(TFunction<void(USsoSubsystem&)> Tell) const;

	std::shared_ptr<sso::Game> Game;
	std::shared_ptr<std::atomic<bool>> GaveUp; // null if no sign-in runs
	std::atomic<int32> RunningSignOuts{0};
	int32 SignOuts = 0; // a sign-in that began before one does not sign the player in again
	TArray<TFuture<void>> Threads;
	FSsoPlayer Player;
};
