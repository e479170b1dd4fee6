#pragma once

#include <string>

#include "SsoTypes.h"
#include "sso/game.hpp"

inline std::string ToUtf8(const FString& Text)
{
	return std::string(TCHAR_TO_UTF8(*Text));
}

inline FString FromUtf8(const std::string& Text)
{
	return FString(UTF8_TO_TCHAR(Text.c_str()));
}

inline FSsoPlayer PlayerFrom(const sso::Player& From)
{
	FSsoPlayer Player;
	Player.UserId = FromUtf8(From.user_id);
	Player.Nick = FromUtf8(From.nick);
	Player.bGuest = From.guest;
	Player.Jwt = FromUtf8(From.jwt);
	Player.Linked = FromUtf8(From.linked);
	Player.bStored = From.stored;
	return Player;
}

// Both enumerations have the same order; that of the plugin has one value more.
static_assert(static_cast<int>(ESsoReason::NotAService) == static_cast<int>(sso::Reason::not_a_service), "reasons differ");
static_assert(static_cast<int>(ESsoReason::Banned) == static_cast<int>(sso::Reason::banned), "reasons differ");

inline FSsoFailure FailureFrom(const sso::Failure& From)
{
	FSsoFailure Failure;
	Failure.Reason = static_cast<ESsoReason>(From.reason);
	Failure.Message = FromUtf8(From.message);
	Failure.Record = FromUtf8(From.record);
	if (From.ban)
	{
		Failure.BanReason = FromUtf8(From.ban->reason);
		Failure.BanUntil = From.ban->until.value_or(0);
		Failure.AppealUrl = FromUtf8(From.ban->appeal_url);
	}
	return Failure;
}

inline FSsoFailure FailureOf(ESsoReason Reason, const TCHAR* Message)
{
	FSsoFailure Failure;
	Failure.Reason = Reason;
	Failure.Message = Message;
	return Failure;
}
