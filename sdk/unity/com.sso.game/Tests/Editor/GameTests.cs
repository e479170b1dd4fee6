using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using NUnit.Framework;

namespace Sso
{
    /// <summary>What no scenario of the contract can play: a changed secret, errors of the game, and a proxy without a service.
    /// </summary>
    public sealed class GameTests
    {
        private const string Session = "{\"status\": \"OK\", \"gsid\": \"1\", \"match\": \"brave otter\"}";
        private const string Login = "{\"status\": \"OK\", \"user_id\": \"1000\", \"nick\": \"Demo\", \"token\": \"long\"}";
        private const string Ended = "{\"status\": \"ERROR\", \"error\": \"the token has ended\"}";
        private const string Guest = "{\"status\": \"OK\", \"user_id\": \"1001\", \"guest\": true}";

        /// <summary>Answers at once, and writes down for how long the game would have waited.</summary>
        private sealed class Service : ITransport
        {
            private const int Patience = 1000; // requests
            public readonly List<double> Pauses = new List<double>();
            public readonly List<string> Paths = new List<string>();
            public readonly List<RawAnswer> Results = new List<RawAnswer>(); // the last one is repeated
            public CancellationToken Following;
            public Action<string> Answering = path => { }; // is called before each answer
            public Action Waiting = () => { };
            public int LoginStatus = 200;

            public Task<RawAnswer> Post(
                string url, string body, IReadOnlyDictionary<string, string> headers, int timeoutS, CancellationToken token)
            {
                string path = url.Substring(url.LastIndexOf('/') + 1);
                Paths.Add(path);
                if (Paths.Count > Patience) throw new InvalidOperationException("the game does not end");
                Answering(path);
                return Task.FromResult(AnswerTo(path));
            }

            public Task Delay(double seconds, CancellationToken token)
            {
                Pauses.Add(seconds);
                Waiting();
                return Task.CompletedTask;
            }

            public Task<int> Follow(string url, Action<string> onText, CancellationToken token)
            {
                Following = token;
                onText("{\"event\": \"stage\", \"stage\": \"opened\"}");
                return Task.FromResult(1000);
            }

            private RawAnswer AnswerTo(string path)
            {
                if (path == "login" && LoginStatus != 200) return new RawAnswer { Status = LoginStatus, Content = Ended };
                if (path == "guest") return new RawAnswer { Status = 200, Content = Guest };
                if (path == "login" || path == "ticket") return new RawAnswer { Status = 200, Content = Login };
                if (path != "getGsidResult") return new RawAnswer { Status = 200, Content = Session };
                RawAnswer result = Results[0];
                if (Results.Count > 1) Results.RemoveAt(0);
                return result;
            }
        }

        [Test]
        public void GuestKeyThatCannotBeReadIsNotReplaced()
        {
            var memory = new Memory();
            var service = new Service();
            Assert.AreEqual("1001", GameOn(service, new EncryptedStore(memory, "a device")).SignInAsGuest().GetAwaiter().GetResult().UserId);
            string stored = memory.Values["guest_key"];
            Assert.AreEqual(Reason.Invalid, Failure(() => GameOn(service, new EncryptedStore(memory, "another device")).SignInAsGuest()));
            Assert.AreEqual(stored, memory.Values["guest_key"]);
            foreach (string wrong in new[] { "", "no key", "AAAA" })
            {
                memory.Values["guest_key"] = wrong;
                Assert.AreEqual(Reason.Invalid, Failure(() => GameOn(service, memory).SignInAsGuest()));
                Assert.AreEqual(wrong, memory.Values["guest_key"]);
            }
            Assert.AreEqual(1, service.Paths.Count);
        }

        [Test]
        public void TokenThatCannotBeReadNeedsASignIn()
        {
            var memory = new Memory();
            new EncryptedStore(memory, "a device").Set("token", "long");
            var service = new Service();
            Assert.AreEqual(Reason.SignInNeeded, Failure(() => GameOn(service, new EncryptedStore(memory, "another device")).Resume()));
            Assert.AreEqual(0, service.Paths.Count);
        }

        [Test]
        public void ErrorOfTheGameWhileItShowsAStageDoesNotUndoTheSignIn()
        {
            var service = new Service();
            service.Results.Add(new RawAnswer { Status = 200, Content = Login });
            var memory = new Memory();
            var options = new SignInOptions { ShowStage = stage => throw new InvalidOperationException(stage) };
            Assert.AreEqual("1000", GameOn(service, memory).SignIn(options).GetAwaiter().GetResult().UserId);
            Assert.AreEqual("long", memory.Values["token"]);
        }

        [Test]
        public void ErrorOfTheGameWhileItShowsTheLinkEndsTheStages()
        {
            var service = new Service();
            var options = new SignInOptions { ShowLink = (url, words) => throw new FormatException(), ShowStage = stage => { } };
            try
            {
                GameOn(service, new Memory()).SignIn(options).GetAwaiter().GetResult();
                Assert.IsTrue(false, "the error of the game was lost");
            }
            catch (FormatException)
            {
                Assert.IsTrue(service.Following.IsCancellationRequested);
            }
        }

        [Test]
        public void SignOutIsNotUndoneByACallThatStillRuns()
        {
            var calls = new Dictionary<string, Func<Game, Task<Player>>>
            {
                ["login"] = game => game.Resume(),
                ["ticket"] = game => game.SignInWithTicket("steam", "1"),
                ["guest"] = game => game.SignInAsGuest(),
                ["getGsidResult"] = game => game.SignIn(new SignInOptions()),
            };
            foreach (string path in calls.Keys)
            {
                var memory = new Memory();
                memory.Set("token", "short");
                var service = new Service();
                service.Results.Add(new RawAnswer { Status = 200, Content = Login });
                Game game = GameOn(service, memory);
                service.Answering = asked =>
                {
                    if (asked == path) game.SignOut().GetAwaiter().GetResult();
                };
                Assert.AreEqual(Reason.Cancelled, Failure(() => calls[path](game)));
                Assert.IsFalse(memory.Values.ContainsKey("token"));
                Assert.AreEqual(null, game.Player);
                Assert.AreEqual(path == "guest" ? 1 : 2, service.Paths.Count(sent => sent == "logout"));
                Assert.AreEqual(path == "getGsidResult" ? 1 : 0, service.Paths.Count(sent => sent == "closeGsid"));
            }
        }

        [Test]
        public void CallThatFailsBecauseOfASignOutIsCancelled()
        {
            foreach (int status in new[] { 401, 403, 503 })
            {
                var memory = new Memory();
                memory.Set("token", "short");
                var service = new Service { LoginStatus = status };
                Game game = GameOn(service, memory);
                service.Answering = asked =>
                {
                    if (asked == "login") game.SignOut().GetAwaiter().GetResult();
                };
                Assert.AreEqual(Reason.Cancelled, Failure(() => game.Resume(1)));
                Assert.AreEqual("login logout", string.Join(" ", service.Paths));
            }
        }

        [Test]
        public void SignOutEndsARenewalThatWaitsForTheService()
        {
            var memory = new Memory();
            memory.Set("token", "short");
            var service = new Service();
            Game game = GameOn(service, memory);
            service.Answering = asked =>
            {
                if (asked == "login") throw new ConnectionLost("the service restarts");
            };
            service.Waiting = () => game.SignOut().GetAwaiter().GetResult();
            Assert.AreEqual(Reason.Cancelled, Failure(() => game.Resume()));
            Assert.AreEqual("login logout", string.Join(" ", service.Paths));
        }

        [Test]
        public void PausesAreNeitherMissingNorEndless()
        {
            var service = new Service();
            foreach (string seconds in new[] { "0", "-5", "7", "86400", "later" })
            {
                service.Results.Add(new RawAnswer { Status = 503, Content = "<html>", RetryAfter = seconds });
            }
            service.Results.Add(new RawAnswer { Status = 200, Content = "{\"status\": \"RETRY\", \"delay\": 0}" });
            service.Results.Add(new RawAnswer { Status = 200, Content = Login });
            Assert.AreEqual("1000", GameOn(service, new Memory()).SignIn(new SignInOptions()).GetAwaiter().GetResult().UserId);
            Assert.AreEqual("1 1 7 60 1 0", string.Join(" ", service.Pauses));
        }

        [Test]
        public void ProxyWithoutAServiceEndsTheSignIn()
        {
            var service = new Service();
            service.Results.Add(new RawAnswer { Status = 502, Content = "<html>" });
            Game game = GameOn(service, new Memory());
            Assert.AreEqual(Reason.Unavailable, Failure(() => game.SignIn(new SignInOptions { MaxOutageS = 0 })));
        }

        private static Game GameOn(ITransport transport, IStore store) => new Game("http://sso.example.com", transport, store);

        private static object Failure(Func<Task<Player>> call)
        {
            try
            {
                call().GetAwaiter().GetResult();
                return null;
            }
            catch (SignInFailed failed)
            {
                return failed.Reason;
            }
        }
    }
}
