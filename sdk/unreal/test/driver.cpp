// The test program of the plugin: sso_unreal_driver BASE_URL FOLDER. It signs in through the Blueprint nodes and the subsystem.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "SsoActions.h"
#include "SsoConversions.h"
#include "SsoSubsystem.h"
#include "json.hpp"

namespace {
using sso::Json;
using sso::JsonWriter;

const std::thread::id GameThread = std::this_thread::get_id();

void Print(const JsonWriter& Event) {
    if (std::this_thread::get_id() != GameThread) {
        std::cerr << "an event came on another thread\n";
        std::exit(3);
    }
    std::cout << Event.str() << std::endl;
}

void Print(const FSsoFailure& Failure) {
    JsonWriter Event;
    Event.add("event", "failed").add("reason", sso::name_of(static_cast<sso::Reason>(Failure.Reason)));
    Event.add("record", ToUtf8(Failure.Record));
    if (Failure.Reason == ESsoReason::Banned) {
        JsonWriter Ban;
        Ban.add("reason", ToUtf8(Failure.BanReason)).add("appeal_url", ToUtf8(Failure.AppealUrl));
        if (Failure.BanUntil) Ban.add("until", static_cast<std::int64_t>(Failure.BanUntil));
        Event.add_raw("ban", Ban.str());
    }
    Print(Event);
}

void PrintPlayer(const FSsoPlayer& Player) {
    Print(JsonWriter()
              .add("event", "signed_in")
              .add("user_id", ToUtf8(Player.UserId))
              .add("nick", ToUtf8(Player.Nick))
              .add_raw("guest", Player.bGuest ? "true" : "false")
              .add("linked", ToUtf8(Player.Linked)));
}

FSsoRequest RequestFrom(const Json& Command) {
    const std::string& Name = Command["do"].text();
    FSsoRequest Request;
    Request.Method = Name == "link"     ? ESsoMethod::LinkGuest
                     : Name == "guest"  ? ESsoMethod::Guest
                     : Name == "ticket" ? ESsoMethod::Ticket
                     : Name == "sign_in" ? ESsoMethod::Browser
                                         : ESsoMethod::Stored;
    Request.bStages = Command["socket"].is_true();
    Request.bSign = Command["sign"].is_true();
    if (Command.has("tries")) Request.Tries = static_cast<int32>(Command["tries"].integer());
    Request.Provider = FromUtf8(Command["provider"].text());
    Request.Ticket = FromUtf8(Command["ticket"].text());
    return Request;
}

void SignIn(UWorld& World, USsoSubsystem& Sso, const Json& Command) {
    std::thread Gives;
    const bool bRenews = Command["do"].text() == "renew";
    std::unique_ptr<USsoSignInAction> Action(USsoSignInAction::SignIn(&World, RequestFrom(Command)));
    Action->OnShowLink.AddLambda([&](const FString& Url, const FString& Words, const FString&, const FSsoPlayer&, const FSsoFailure&) {
        Print(JsonWriter().add("event", "show_link").add("url", ToUtf8(Url)).add("words", ToUtf8(Words)));
        if (!USsoSubsystem::MakeQrCode(Url)) std::exit(4);
        if (Command["cancel_after"].text() == "show_link") {
            Gives = std::thread([&Sso] {
                std::this_thread::sleep_for(std::chrono::milliseconds(500));
                AsyncTask(ENamedThreads::GameThread, [&Sso] { Sso.Cancel(); });
            });
        }
        // Not part of the contract: the player signs out while a sign-in runs.
        if (Command["sign_out_after"].text() == "show_link") Sso.SignOut();
    });
    Action->OnStage.AddLambda([](const FString&, const FString&, const FString& Stage, const FSsoPlayer&, const FSsoFailure&) {
        Print(JsonWriter().add("event", "stage").add("stage", ToUtf8(Stage)));
    });
    Action->OnSignedIn.AddLambda([&](const FString&, const FString&, const FString&, const FSsoPlayer& Player, const FSsoFailure&) {
        bRenews ? Print(JsonWriter().add("event", "renewed")) : PrintPlayer(Player);
    });
    Action->OnFailed.AddLambda([](const FString&, const FString&, const FString&, const FSsoPlayer&, const FSsoFailure& Failure) {
        Print(Failure);
    });
    Action->Activate();
    bool bRefused = false;
    FSsoCallbacks Second;
    Second.Failed = [&bRefused](const FSsoFailure& Failure) { bRefused = Failure.Reason == ESsoReason::Busy; };
    Sso.SignIn(FSsoRequest(), MoveTemp(Second));
    if (!bRefused) std::exit(5);  // a second sign-in must not begin
    while (!Action->bIsReadyToDestroy) RunGameThreadTask();
    if (Gives.joinable()) Gives.join();
}

void Check(UWorld& World, const Json& Command) {
    std::unique_ptr<USsoCheckAction> Action(
        USsoCheckAction::CheckPermission(&World, Command["application_id"].integer(), FromUtf8(Command["rule"].text())));
    Action->OnChecked.AddLambda([](bool bAllow, const FSsoFailure&) {
        Print(JsonWriter().add("event", "checked").add_raw("allow", bAllow ? "true" : "false"));
    });
    Action->OnFailed.AddLambda([](bool, const FSsoFailure& Failure) { Print(Failure); });
    Action->Activate();
    while (!Action->bIsReadyToDestroy) RunGameThreadTask();
}
}  // namespace

int main(int Count, char** Arguments) {
    if (Count != 3) return 2;
    UGameInstance Instance;
    Instance.Subsystem = std::make_unique<USsoSubsystem>();
    UWorld World;
    World.Instance = &Instance;
    USsoSubsystem& Sso = *Instance.GetSubsystem<USsoSubsystem>();
    Sso.BaseUrl = FromUtf8(Arguments[1]);
    Sso.Folder = FromUtf8(Arguments[2]);
    Sso.EncryptionKey = TEXT("a key of the tests");
    for (std::string Line; std::getline(std::cin, Line);) {
        const auto Command = Json::parse(Line);
        if (!Command) return 2;
        if (Command->has("factor")) Sso.Factor = FromUtf8((*Command)["factor"].text());
        const std::string& Name = (*Command)["do"].text();
        if (Name == "check") {
            Check(World, *Command);
        } else if (Name == "sign_out") {
            bool bIsOver = false;
            Sso.SignOutThen([&bIsOver] { bIsOver = true; });
            while (!bIsOver) RunGameThreadTask();
            Print(JsonWriter().add("event", "signed_out"));
        } else if (Command->has("leave")) {  // not part of the contract: the game ends while a sign-in begins
            Sso.SignIn(RequestFrom(*Command), FSsoCallbacks());
            break;
        } else {
            SignIn(World, Sso, *Command);
        }
    }
    Sso.Deinitialize();
}
