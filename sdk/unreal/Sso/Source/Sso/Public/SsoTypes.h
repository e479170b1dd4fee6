#pragma once

#include "CoreMinimal.h"

#include "SsoTypes.generated.h"

/** Why a player could not be signed in. */
UENUM(BlueprintType)
enum class ESsoReason : uint8
{
	/** The player gave up in the game. */
	Cancelled,
	/** The player pressed "This was not me". */
	Denied,
	/** Nobody signed in in time. */
	Expired,
	/** The session was closed elsewhere. */
	Closed,
	/** The service refused the request. */
	Refused,
	/** See the ban of the failure. */
	Banned,
	/** The game sent a wrong field. */
	Invalid,
	/** The service has no guests. */
	NoGuests,
	/** Nothing is stored, or what is stored has ended. */
	SignInNeeded,
	/** The service cannot be reached. */
	Unavailable,
	/** The address does not belong to the service. */
	NotAService,
	/** Another sign-in runs. */
	Busy
};

/** How a player signs in. */
UENUM(BlueprintType)
enum class ESsoMethod : uint8
{
	/** With a browser: show the link and the words. */
	Browser,
	/** The guest signs in with a browser, and the player keeps what the guest has. */
	LinkGuest,
	/** With what is stored of the last time, without a browser. */
	Stored,
	/** As a guest, with a key of this device. */
	Guest,
	/** With the ticket of a store. */
	Ticket
};

USTRUCT(BlueprintType)
struct SSO_API FSsoRequest
{
	GENERATED_BODY()

	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Sso")
	ESsoMethod Method = ESsoMethod::Browser;

	/** Shows what happens in the browser; it opens a WebSocket. */
	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Sso")
	bool bStages = true;

	/** Signs the requests with a new key, for games whose address is shared. */
	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Sso")
	bool bSign = false;

	/** Requests for a stored sign-in until it gives up. */
	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Sso")
	int32 Tries = 3;

	/** The store of the ticket, such as "steam". */
	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Sso")
	FString Provider;

	UPROPERTY(EditAnywhere, BlueprintReadWrite, Category = "Sso")
	FString Ticket;
};

USTRUCT(BlueprintType)
struct SSO_API FSsoPlayer
{
	GENERATED_BODY()

	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	FString UserId;

	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	FString Nick;

	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	bool bGuest = false;

	/** For the game's own servers, which verify it. */
	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	FString Jwt;

	/** After a guest was linked: "upgraded", or "merged" into an account that existed. */
	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	FString Linked;

	/** False: the sign-in could not be stored, so the player must sign in again at the next start. */
	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	bool bStored = true;
};

USTRUCT(BlueprintType)
struct SSO_API FSsoFailure
{
	GENERATED_BODY()

	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	ESsoReason Reason = ESsoReason::Unavailable;

	/** For developers. Show the player a text of your own for each reason. */
	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	FString Message;

	/** The id of the service's record of a refusal, if it gave one. */
	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	FString Record;

	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	FString BanReason;

	/** Unix seconds; 0: for ever. */
	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	int64 BanUntil = 0;

	UPROPERTY(BlueprintReadOnly, Category = "Sso")
	FString AppealUrl;
};

/** What a sign-in reports to C++, on the game thread. All are optional. */
struct FSsoCallbacks
{
	TFunction<void(const FString& Url, const FString& Words)> ShowLink;
	TFunction<void(const FString& Stage)> Stage;
	TFunction<void(const FSsoPlayer& Player)> SignedIn;
	TFunction<void(const FSsoFailure& Failure)> Failed;
};
