#include "SsoSubsystem.h"

#include "Async/Async.h"
#include "HAL/PlatformProcess.h"
#include "Misc/Guid.h"
#include "Misc/Paths.h"
#include "SsoConversions.h"

namespace
{
std::unique_ptr<sso::Store> OpenStore(const FString& Folder, const FString& EncryptionKey)
{
	const FString Place = Folder.IsEmpty() ? FPaths::Combine(FPaths::ProjectSavedDir(), TEXT("Sso")) : Folder;
	// Paths of Unreal are relative to the folder of the program, which need not be the working folder.
	std::unique_ptr<sso::Store> Store = sso::file_store(ToUtf8(FPaths::ConvertRelativePathToFull(Place)));
	if (EncryptionKey.IsEmpty())
	{
		return Store;
	}
	return sso::encrypted_store(std::move(Store), sso::aes_gcm(ToUtf8(EncryptionKey)));
}

// The name of this device, which is made at the first start.
std::string DeviceName(sso::Store& Store)
{
	const char* const Name = "factor";
	std::string Stored = Store.get(Name).value_or("");
	if (Stored.empty())
	{
		Stored = ToUtf8(FGuid::NewGuid().ToString());
		Store.set(Name, Stored);
	}
	return Stored;
}

sso::Result<sso::Player> Perform(sso::Game& Game, const FSsoRequest& Request, const sso::SignIn& How)
{
	switch (Request.Method)
	{
	case ESsoMethod::Browser:
		return Game.sign_in(How);
	case ESsoMethod::LinkGuest:
		return Game.link(How);
	case ESsoMethod::Stored:
		return Game.resume(Request.Tries);
	case ESsoMethod::Guest:
		return Game.sign_in_as_guest();
	case ESsoMethod::Ticket:
		break;
	}
	return Game.sign_in_with_ticket(ToUtf8(Request.Provider), ToUtf8(Request.Ticket));
}
} // namespace

std::shared_ptr<sso::Game> USsoSubsystem::OpenGame()
{
	if (!Game)
	{
		if (!CertificateFile.IsEmpty())
		{
			sso::trust(ToUtf8(CertificateFile));
		}
		std::unique_ptr<sso::Store> Store = OpenStore(Folder, EncryptionKey);
		sso::Options Options;
		Options.factor = Factor.IsEmpty() ? DeviceName(*Store) : ToUtf8(Factor);
		Options.application_id = ApplicationId;
		Game = std::make_shared<sso::Game>(ToUtf8(BaseUrl), Options, std::move(Store));
	}
	return Game;
}

void USsoSubsystem::Run(TFunction<void(sso::Game&)> Work)
{
	Threads.RemoveAll([](const TFuture<void>& Thread) { return Thread.IsReady(); });
	Threads.Add(Async(EAsyncExecution::Thread, [Kept = OpenGame(), Work]() { Work(*Kept); }));
}

void USsoSubsystem::Report(TFunction<void(USsoSubsystem&)> Tell) const
{
	// This object may be gone when the game thread gets there.
	TWeakObjectPtr<USsoSubsystem> Self(const_cast<USsoSubsystem*>(this));
	AsyncTask(ENamedThreads::GameThread, [Self, Tell]()
	{
		USsoSubsystem* Alive = Self.Get();
		if (Alive && Alive->Game)
		{
			Tell(*Alive);
		}
	});
}

void USsoSubsystem::SignIn(const FSsoRequest& Request, FSsoCallbacks Callbacks)
{
	if (GaveUp)
	{
		if (Callbacks.Failed)
		{
			Callbacks.Failed(FailureOf(ESsoReason::Busy, TEXT("another sign-in runs")));
		}
		return;
	}
	GaveUp = std::make_shared<std::atomic<bool>>(false);
	Run([this, Request, Callbacks, Stop = GaveUp, Began = SignOuts](sso::Game& Running)
	{
		while (RunningSignOuts > 0) // a sign-out ends what runs, so this begins afterwards
		{
			FPlatformProcess::Sleep(0.01f);
		}
		sso::SignIn How;
		How.sign = Request.bSign;
		How.show_link = [this, &Callbacks, &Running, Stop](const std::string& Url, const std::string& Words)
		{
			if (*Stop) // the player gave up before there was a request to end
			{
				Running.cancel();
			}
			Report([Callbacks, Url, Words](USsoSubsystem&)
			{
				if (Callbacks.ShowLink)
				{
					Callbacks.ShowLink(FromUtf8(Url), FromUtf8(Words));
				}
			});
		};
		if (Request.bStages)
		{
			How.show_stage = [this, &Callbacks](const std::string& Stage)
			{
				Report([Callbacks, Stage](USsoSubsystem&)
				{
					if (Callbacks.Stage)
					{
						Callbacks.Stage(FromUtf8(Stage));
					}
				});
			};
		}
		const sso::Failure Cancelled{sso::Reason::cancelled, "the player gave up", "", {}};
		const sso::Result<sso::Player> Result = *Stop ? Cancelled : Perform(Running, Request, How);
		Report([Callbacks, Result, Cancelled, Began](USsoSubsystem& Self)
		{
			Self.GaveUp.reset();
			if (!Result || Began != Self.SignOuts)
			{
				if (Result) // it may have stored its token after the sign-out
				{
					Self.SignOut();
				}
				if (Callbacks.Failed)
				{
					Callbacks.Failed(FailureFrom(Result ? Cancelled : Result.failure()));
				}
				return;
			}
			Self.Player = PlayerFrom(*Result);
			if (Callbacks.SignedIn)
			{
				Callbacks.SignedIn(Self.Player);
			}
		});
	});
}

void USsoSubsystem::Check(int64 Application, const FString& Rule, TFunction<void(bool bAllow)> Checked, TFunction<void(const FSsoFailure&)> Failed)
{
	Run([this, Application, Name = ToUtf8(Rule), Checked, Failed](sso::Game& Running)
	{
		const sso::Result<bool> Result = Running.may(Application, Name);
		Report([Checked, Failed, Result](USsoSubsystem&)
		{
			if (Result && Checked)
			{
				Checked(*Result);
			}
			else if (!Result && Failed)
			{
				Failed(FailureFrom(Result.failure()));
			}
		});
	});
}

void USsoSubsystem::Cancel()
{
	if (GaveUp)
	{
		*GaveUp = true;
		Game->cancel();
	}
}

void USsoSubsystem::SignOutThen(TFunction<void()> SignedOut)
{
	Player = FSsoPlayer();
	++SignOuts;
	Cancel();
	++RunningSignOuts;
	Run([this, SignedOut](sso::Game& Running)
	{
		Running.sign_out();
		--RunningSignOuts;
		Report([SignedOut](USsoSubsystem&)
		{
			if (SignedOut)
			{
				SignedOut();
			}
		});
	});
}

void USsoSubsystem::OpenLink(const FString& Url)
{
	FPlatformProcess::LaunchURL(*Url, nullptr, nullptr);
}

void USsoSubsystem::Deinitialize()
{
	Cancel();
	for (TFuture<void>& Thread : Threads) // their code must not be unloaded while they run
	{
		do // a call that begins only now must end, too
		{
			Game->cancel();
		} while (!Thread.WaitFor(FTimespan::FromMilliseconds(100)));
	}
	Threads.Empty();
	Game.reset();
	Super::Deinitialize();
}
