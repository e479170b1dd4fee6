#include "SsoActions.h"

#include "Engine/Engine.h"
#include "Engine/GameInstance.h"
#include "Engine/World.h"
#include "SsoConversions.h"
#include "SsoSubsystem.h"

namespace
{
const TCHAR* const NoSubsystem = TEXT("there is no game instance");

USsoSubsystem* FindSubsystem(UObject* WorldContextObject)
{
	UWorld* World = GEngine ? GEngine->GetWorldFromContextObject(WorldContextObject, EGetWorldErrorMode::LogAndReturnNull) : nullptr;
	UGameInstance* Instance = World ? World->GetGameInstance() : nullptr;
	return Instance ? Instance->GetSubsystem<USsoSubsystem>() : nullptr;
}
} // namespace

USsoSignInAction* USsoSignInAction::SignIn(UObject* WorldContextObject, const FSsoRequest& Request)
{
	USsoSignInAction* Action = NewObject<USsoSignInAction>();
	Action->Request = Request;
	Action->Subsystem = FindSubsystem(WorldContextObject);
	Action->RegisterWithGameInstance(WorldContextObject);
	return Action;
}

void USsoSignInAction::Activate()
{
	USsoSubsystem* Found = Subsystem.Get();
	if (!Found)
	{
		OnFailed.Broadcast(FString(), FString(), FString(), FSsoPlayer(), FailureOf(ESsoReason::Invalid, NoSubsystem));
		End();
		return;
	}
	FSsoCallbacks Callbacks;
	TWeakObjectPtr<USsoSignInAction> Self(this);
	Callbacks.ShowLink = [Self](const FString& Url, const FString& Words)
	{
		if (USsoSignInAction* Alive = Self.Get())
		{
			Alive->OnShowLink.Broadcast(Url, Words, FString(), FSsoPlayer(), FSsoFailure());
		}
	};
	Callbacks.Stage = [Self](const FString& Stage)
	{
		if (USsoSignInAction* Alive = Self.Get())
		{
			Alive->OnStage.Broadcast(FString(), FString(), Stage, FSsoPlayer(), FSsoFailure());
		}
	};
	Callbacks.SignedIn = [Self](const FSsoPlayer& Player)
	{
		if (USsoSignInAction* Alive = Self.Get())
		{
			Alive->OnSignedIn.Broadcast(FString(), FString(), FString(), Player, FSsoFailure());
			Alive->End();
		}
	};
	Callbacks.Failed = [Self](const FSsoFailure& Failure)
	{
		if (USsoSignInAction* Alive = Self.Get())
		{
			Alive->OnFailed.Broadcast(FString(), FString(), FString(), FSsoPlayer(), Failure);
			Alive->End();
		}
	};
	Found->SignIn(Request, MoveTemp(Callbacks));
}

void USsoSignInAction::End()
{
	SetReadyToDestroy();
}

USsoCheckAction* USsoCheckAction::CheckPermission(UObject* WorldContextObject, int64 ApplicationId, const FString& Rule)
{
	USsoCheckAction* Action = NewObject<USsoCheckAction>();
	Action->Application = ApplicationId;
	Action->Rule = Rule;
	Action->Subsystem = FindSubsystem(WorldContextObject);
	Action->RegisterWithGameInstance(WorldContextObject);
	return Action;
}

void USsoCheckAction::Activate()
{
	USsoSubsystem* Found = Subsystem.Get();
	if (!Found)
	{
		OnFailed.Broadcast(false, FailureOf(ESsoReason::Invalid, NoSubsystem));
		SetReadyToDestroy();
		return;
	}
	TWeakObjectPtr<USsoCheckAction> Self(this);
	const auto Tell = [Self](FSsoCheckPin USsoCheckAction::*Pin, bool bAllow, const FSsoFailure& Failure)
	{
		if (USsoCheckAction* Alive = Self.Get())
		{
			(Alive->*Pin).Broadcast(bAllow, Failure);
			Alive->SetReadyToDestroy();
		}
	};
	Found->Check(
		Application, Rule,
		[Tell](bool bAllow) { Tell(&USsoCheckAction::OnChecked, bAllow, FSsoFailure()); },
		[Tell](const FSsoFailure& Failure) { Tell(&USsoCheckAction::OnFailed, false, Failure); });
}
