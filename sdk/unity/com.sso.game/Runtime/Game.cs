using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    public sealed class Player
    {
        public string UserId = "";
        public string Nick = "";
        public bool Guest;
        /// <summary>For the game's own servers, which verify it. Empty without a factor.</summary>
        public string Jwt = "";
        /// <summary>After Link: "upgraded", or "merged" into an account that existed.</summary>
        public string Linked = "";
    }

    /// <summary>Where a game keeps its token and its guest key.</summary>
    public interface IStore
    {
        /// <summary>Returns null if nothing is stored, and an empty text if what is stored cannot be read.</summary>
        string Get(string name);
        /// <summary>Null removes a value.</summary>
        void Set(string name, string value);
    }

    public sealed class SignInOptions
    {
        /// <summary>Gets the link to open, or to show as a QR code, and the words to show next to it.</summary>
        public Action<string, string> ShowLink = (url, words) => { };
        /// <summary>Gets each stage of the page; it opens a WebSocket.</summary>
        public Action<string> ShowStage;
        /// <summary>Signs the requests with a new key, for games whose address is shared.</summary>
        public bool Sign;
        /// <summary>For how many seconds the service may be away: a session outlives a restart of the service.</summary>
        public double MaxOutageS = 60;
        /// <summary>Cancelled when the player gives up.</summary>
        public CancellationToken Token = CancellationToken.None;
    }

    /// <summary>A game: signs its player in and keeps the player signed in. Failures are SignInFailed.</summary>
    public sealed class Game
    {
        private const string TokenName = "token";
        private const string GuestKeyName = "guest_key";
        private const int SignOutS = 3; // the player does not wait for a service that is away
        private static readonly Dictionary<string, string> NoHeaders = new Dictionary<string, string>();
        private readonly string baseUrl;
        private readonly string factor;
        private readonly long applicationId;
        private readonly ITransport transport;
        private readonly IStore store;
        private readonly object storing = new object(); // held while the stored token changes
        private volatile int signOuts; // a call that began before a sign-out does not sign the player in again

        /// <param name="factor">A name of this device, of the game's choice. It belongs to each user JWT.</param>
        public Game(string baseUrl, ITransport transport, IStore store, string factor = "", long applicationId = 0)
        {
            this.baseUrl = baseUrl.TrimEnd('/');
            this.transport = transport;
            this.store = store;
            this.factor = factor;
            this.applicationId = applicationId;
        }

        public Player Player { get; private set; }

        /// <summary>Signs the player in with a browser.</summary>
        public Task<Player> SignIn(SignInOptions options) =>
            UntilSignOut(began => WithBrowser(options, Fields(), NoHeaders, began));

        /// <summary>Signs the guest in with a browser. The player keeps what the guest has.</summary>
        public Task<Player> Link(SignInOptions options)
        {
            if (Player == null || !Player.Guest) throw new SignInFailed(Reason.SignInNeeded, "sign the guest in first");
            Dictionary<string, string> headers = UserHeaders();
            return UntilSignOut(began => WithBrowser(options, Fields().Add("link", "1"), headers, began));
        }

        /// <summary>Signs the player in with the stored token, without a browser; this also renews the tokens.</summary>
        public Task<Player> Resume(int tries = 3) => UntilSignOut(began => WithStoredToken(tries, began));

        private async Task<Player> WithStoredToken(int tries, int began)
        {
            string stored = store.Get(TokenName);
            if (string.IsNullOrEmpty(stored)) throw new SignInFailed(Reason.SignInNeeded, "nothing is stored, or it cannot be read");
            while (true)
            {
                try
                {
                    Answer answer = await Ask("/proxy/api/login", Fields().Add("token", stored));
                    if (answer.Status != 401) return await Accept(answer, began); // 403 does not mean that the token has ended
                    Use(Player, null, began);
                    throw new SignInFailed(Reason.SignInNeeded, answer.Body["error"].Text);
                }
                catch (SignInFailed failed) when (failed.Reason == Reason.Unavailable && --tries > 0)
                {
                    // The token stays, whatever happens.
                }
                await transport.Delay(1, CancellationToken.None);
                if (began != signOuts) throw SignedOut();
            }
        }

        /// <summary>Signs a guest in with the key of this device, which is made at the first call. If it cannot be read,
        /// this fails with Invalid and stores nothing.</summary>
        public Task<Player> SignInAsGuest() => UntilSignOut(AsGuest);

        private async Task<Player> AsGuest(int began)
        {
            SigningKey key = GuestKey();
            string body = Fields()
                .Add("public_key", key.PublicKey)
                .Add("ts", DateTimeOffset.UtcNow.ToUnixTimeSeconds())
                .Add("nonce", SigningKey.NewNonce())
                .ToString();
            var headers = new Dictionary<string, string> { ["Request-Sign"] = key.Sign(body) };
            Answer answer = await Session.First(transport, baseUrl + "/proxy/api/guest", body, headers, CancellationToken.None);
            if (answer.Status == 404) throw new SignInFailed(Reason.NoGuests, "the service has no guests");
            if (!answer.IsOk) throw SignInFailed.Of(answer);
            lock (storing)
            {
                if (began != signOuts) throw SignedOut();
                return Player = PlayerOf(answer.Body); // a guest comes back by its key, so no token is stored
            }
        }

        /// <summary>Signs the player in with the ticket of a store.</summary>
        public Task<Player> SignInWithTicket(string provider, string ticket) => UntilSignOut(async began =>
            await Accept(await Ask("/proxy/api/ticket", Fields().Add("provider", provider).Add("ticket", ticket)), began));

        /// <summary>Asks whether the player may do something.</summary>
        public async Task<bool> May(long application, string rule)
        {
            if (Player == null) throw new SignInFailed(Reason.SignInNeeded, "no player is signed in");
            string questions = "{\"questions\": [" + new JsonWriter().Add("rule", rule) + "]}";
            string body = new JsonWriter().Add("application_id", application).AddRaw("data", questions).ToString();
            string url = baseUrl + "/api/permissions/check";
            Answer answer = await Session.First(transport, url, body, UserHeaders(), CancellationToken.None);
            if (!answer.IsOk) throw SignInFailed.Of(answer);
            IReadOnlyList<Json> answers = answer.Body["data"].Items;
            return answers.Count > 0 && answers[0]["allow"].IsTrue;
        }

        /// <summary>Forgets the player and ends the sign-in. The key of a guest stays: it is the only way back to its
        /// progress. Calls that run fail with Cancelled instead of signing the player in again.</summary>
        public async Task SignOut()
        {
            string stored;
            lock (storing)
            {
                stored = store.Get(TokenName);
                Player = null;
                store.Set(TokenName, null);
                signOuts++; // last: a call that has read the token before must count as older
            }
            await LogOut(stored);
        }

        private async Task LogOut(string token)
        {
            if (string.IsNullOrEmpty(token)) return;
            try
            {
                string body = new JsonWriter().Add("token", token).ToString();
                await transport.Post(baseUrl + "/proxy/api/logout", body, NoHeaders, SignOutS, CancellationToken.None);
            }
            catch (ConnectionLost)
            {
                // The tokens end later, by themselves.
            }
        }

        /// <summary>A key that cannot be read is not replaced: it is the only way back to the guest's progress.</summary>
        private SigningKey GuestKey()
        {
            string stored = store.Get(GuestKeyName);
            if (stored != null)
            {
                return SigningKey.Read(stored) ?? throw new SignInFailed(Reason.Invalid, "the key of the guest cannot be read");
            }
            SigningKey key = SigningKey.Create();
            store.Set(GuestKeyName, key.Stored);
            return key;
        }

        private JsonWriter Fields()
        {
            var fields = new JsonWriter();
            if (factor != "") fields.Add("factor", factor);
            if (applicationId != 0) fields.Add("app_id", applicationId);
            return fields;
        }

        private Dictionary<string, string> UserHeaders() =>
            new Dictionary<string, string> { ["Authorization"] = "Bearer " + Player.Jwt, ["Factor"] = factor };

        /// <summary>Runs a call that signs the player in. After a sign-out it fails as Cancelled, whatever the service has
        /// answered.</summary>
        private async Task<Player> UntilSignOut(Func<int, Task<Player>> call)
        {
            int began = signOuts;
            try
            {
                return await call(began);
            }
            catch (SignInFailed) when (began != signOuts)
            {
                throw SignedOut();
            }
        }

        private async Task<Player> WithBrowser(
            SignInOptions options, JsonWriter fields, Dictionary<string, string> headers, int began)
        {
            Session session = await Session.Register(transport, baseUrl, fields, headers, options.Sign, options.Token);
            using (var end = CancellationTokenSource.CreateLinkedTokenSource(options.Token))
            {
                Task stages = options.ShowStage == null ? Task.CompletedTask : session.FollowStages(options.ShowStage, end.Token);
                try
                {
                    options.ShowLink(session.Link, session.Words);
                    Player player = await Keep(await session.Result(options.MaxOutageS, end.Token), began);
                    await session.Close("Success");
                    return player;
                }
                catch (Exception error) when (IsCancelled(error))
                {
                    await session.Close("Error");
                    throw SignInFailed.GaveUp();
                }
                finally
                {
                    end.Cancel();
                    await Ended(stages);
                }
            }
        }

        /// <summary>The stages are optional, so no error of them, nor of the game that shows them, ends a sign-in.</summary>
        private static async Task Ended(Task task)
        {
            try
            {
                await task;
            }
            catch (Exception)
            {
                // The result of the session counts.
            }
        }

        private Task<Answer> Ask(string path, JsonWriter fields) =>
            Session.First(transport, baseUrl + path, fields.ToString(), NoHeaders, CancellationToken.None);

        private Task<Player> Accept(Answer answer, int began)
        {
            if (!answer.IsOk) throw SignInFailed.Of(answer);
            return Keep(answer.Body, began);
        }

        /// <summary>The result is returned only once, so its token is stored before anything else.</summary>
        private async Task<Player> Keep(Json body, int began)
        {
            Player player = PlayerOf(body);
            string token = body["token"].Text;
            if (Use(player, token, began)) return player;
            await LogOut(token);
            throw SignedOut();
        }

        /// <summary>Changes the stored token. Returns false if the player has signed out since the call began.</summary>
        private bool Use(Player player, string token, int began)
        {
            lock (storing)
            {
                if (began != signOuts) return false;
                store.Set(TokenName, token);
                Player = player;
                return true;
            }
        }

        private static bool IsCancelled(Exception error) =>
            error is OperationCanceledException || (error as SignInFailed)?.Reason == Reason.Cancelled;

        private static SignInFailed SignedOut() => new SignInFailed(Reason.Cancelled, "the player has signed out meanwhile");

        private static Player PlayerOf(Json body) => new Player
        {
            UserId = body["user_id"].AsText,
            Nick = body["nick"].Text,
            Guest = body["guest"].IsTrue,
            Jwt = body["jwt"].Text,
            Linked = body["linked"].Text,
        };
    }
}
