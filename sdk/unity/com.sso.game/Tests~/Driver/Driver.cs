// The test program of this package: Driver.exe BASE_URL FOLDER. The contract says what it reads and prints.
using System;
using System.Collections.Generic;
using System.IO;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    internal sealed class FileStore : IStore
    {
        private readonly string folder;

        public FileStore(string folder)
        {
            this.folder = folder;
        }

        public string Get(string name)
        {
            string file = Path.Combine(folder, name);
            return File.Exists(file) ? File.ReadAllText(file) : null;
        }

        public void Set(string name, string value)
        {
            string file = Path.Combine(folder, name);
            if (value == null) File.Delete(file);
            else File.WriteAllText(file, value);
        }
    }

    internal static class Driver
    {
        private static readonly object OneAtATime = new object();

        private static int Main(string[] arguments)
        {
            Run(arguments[0], arguments[1]).GetAwaiter().GetResult();
            return 0;
        }

        private static async Task Run(string baseUrl, string folder)
        {
            Game game = null;
            for (string line; (line = Console.ReadLine()) != null;)
            {
                Json command = Json.Parse(line);
                game = game ?? new Game(baseUrl, new HttpClientTransport(), new FileStore(folder), command["factor"].Text);
                try
                {
                    await Carry(game, command);
                }
                catch (SignInFailed failed)
                {
                    Print(Event(failed));
                }
            }
        }

        private static async Task Carry(Game game, Json command)
        {
            switch (command["do"].Text)
            {
                case "sign_in": SignedIn(await game.SignIn(Options(command))); break;
                case "link": SignedIn(await game.Link(Options(command))); break;
                case "resume": SignedIn(await game.Resume(command.Has("tries") ? (int)command["tries"].Integer : 3)); break;
                case "guest": SignedIn(await game.SignInAsGuest()); break;
                case "ticket": SignedIn(await game.SignInWithTicket(command["provider"].Text, command["ticket"].Text)); break;
                case "renew":
                    await game.Resume();
                    Print(new JsonWriter().Add("event", "renewed"));
                    break;
                case "check":
                    bool allow = await game.May(command["application_id"].Integer, command["rule"].Text);
                    Print(new JsonWriter().Add("event", "checked").AddRaw("allow", allow ? "true" : "false"));
                    break;
                case "sign_out":
                    await game.SignOut();
                    Print(new JsonWriter().Add("event", "signed_out"));
                    break;
            }
        }

        private static SignInOptions Options(Json command)
        {
            var given = new CancellationTokenSource();
            var options = new SignInOptions { Sign = command["sign"].IsTrue, Token = given.Token };
            options.ShowLink = (url, words) =>
            {
                Print(new JsonWriter().Add("event", "show_link").Add("url", url).Add("words", words));
                if (command["cancel_after"].Text == "show_link") given.CancelAfter(500);
            };
            if (command["socket"].IsTrue)
            {
                options.ShowStage = stage => Print(new JsonWriter().Add("event", "stage").Add("stage", stage));
            }
            return options;
        }

        private static void SignedIn(Player player) =>
            Print(new JsonWriter()
                .Add("event", "signed_in")
                .Add("user_id", player.UserId)
                .Add("nick", player.Nick)
                .AddRaw("guest", player.Guest ? "true" : "false")
                .Add("linked", player.Linked));

        private static JsonWriter Event(SignInFailed failed)
        {
            var written = new JsonWriter().Add("event", "failed").Add("reason", Name(failed.Reason)).Add("record", failed.Record);
            if (failed.Ban == null) return written;
            var ban = new JsonWriter().Add("reason", failed.Ban.Reason).Add("appeal_url", failed.Ban.AppealUrl);
            if (failed.Ban.Until.HasValue) ban.Add("until", failed.Ban.Until.Value);
            return written.AddRaw("ban", ban.ToString());
        }

        /// <summary>NoGuests is no_guests.</summary>
        private static string Name(Reason reason)
        {
            var name = new StringBuilder();
            foreach (char c in reason.ToString())
            {
                if (char.IsUpper(c) && name.Length > 0) name.Append('_');
                name.Append(char.ToLowerInvariant(c));
            }
            return name.ToString();
        }

        private static void Print(JsonWriter written)
        {
            lock (OneAtATime) Console.WriteLine(written);
        }
    }
}
