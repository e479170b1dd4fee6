#pragma once

#include "CoreMinimal.h"
#include "Kismet/BlueprintAsyncActionBase.h"
#include "SsoTypes.h"

#include "SsoActions.generated.h"

class USsoSubsystem;

// All pins of a node have the same parameters, as Blueprints need it.
DECLARE_DYNAMIC_MULTICAST_DELEGATE_FiveParams(FSsoSignInPin, const FString&, Url, const FString&, Words, const FString&, Stage, const FSsoPlayer&, Player, const FSsoFailure&, Failure);
DECLARE_DYNAMIC_MULTICAST_DELEGATE_TwoParams(FSsoCheckPin, bool, bAllow, const FSsoFailure&, Failure);

/** Blueprint nodes that sign a player in. */
UCLASS()
class SSO_API USsoSignInAction : public UBlueprintAsyncActionBase
{
	GENERATED_BODY()

public:
	/** Show the link and the words, as a QR code or with Open Link. */
	UPROPERTY(BlueprintAssignable)
	FSsoSignInPin OnShowLink;

	/** What happens in the browser: opened, signing_in, confirmed, … */
	UPROPERTY(BlueprintAssignable)
	FSsoSignInPin OnStage;

	UPROPERTY(BlueprintAssignable)
	FSsoSignInPin OnSignedIn;

	UPROPERTY(BlueprintAssignable)
	FSsoSignInPin OnFailed;

	/** Signs the player in with a browser, or in one of the other ways. */
	UFUNCTION(BlueprintCallable, Category = "Sso", meta = (BlueprintInternalUseOnly = "true", WorldContext = "WorldContextObject", DisplayName = "Sign In"))
	static USsoSignInAction* SignIn(UObject* WorldContextObject, const FSsoRequest& Request);

	virtual void Activate() override;

private:
	void End();

	TWeakObjectPtr<USsoSubsystem> Subsystem;
	FSsoRequest Request;
};

/** A Blueprint node that asks whether the player may do something. */
UCLASS()
class SSO_API USsoCheckAction : public UBlueprintAsyncActionBase
{
	GENERATED_BODY()

public:
	UPROPERTY(BlueprintAssignable)
	FSsoCheckPin OnChecked;

	UPROPERTY(BlueprintAssignable)
	FSsoCheckPin OnFailed;

	UFUNCTION(BlueprintCallable, Category = "Sso", meta = (BlueprintInternalUseOnly = "true", WorldContext = "WorldContextObject", DisplayName = "Check Permission"))
	static USsoCheckAction* CheckPermission(UObject* WorldContextObject, int64 ApplicationId, const FString& Rule);

	virtual void Activate() override;

private:
	TWeakObjectPtr<USsoSubsystem> Subsystem;
	int64 Application = 0;
	FString Rule;
};
