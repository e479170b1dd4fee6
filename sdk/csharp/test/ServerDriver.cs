// The test program of this package: ServerDriver.exe BASE_URL FOLDER. The contract says what it reads and prints.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading.Tasks;

namespace Sso
{
    internal static class ServerDriver
    {
        private static string baseUrl;
        private static Service service;
        private static PlayerVerifier verifier;
        private static double? time;

        private static int Main(string[] arguments)
        {
            Console.InputEncoding = Console.OutputEncoding = new UTF8Encoding(false);
            baseUrl = arguments[0];
            service = new Service(baseUrl);
            Run().GetAwaiter().GetResult();
            return 0;
        }

        private static async Task Run()
        {
            for (string line; (line = Console.ReadLine()) != null;)
            {
                try
                {
                    await Carry(Json.Parse(line));
                }
                catch (RequestFailed failed)
                {
                    Print(new JsonWriter().Add("event", "failed").Add("reason", failed.Reason));
                }
                catch (PlayerRefused refused)
                {
                    Print(new JsonWriter().Add("event", "refused").Add("reason", refused.Reason));
                }
                catch (IOException error)
                {
                    Print(new JsonWriter().Add("event", "thrown").Add("message", error.Message));
                }
                catch (SignInRefused refused)
                {
                    Print(new JsonWriter().Add("event", "refused").Add("reason", refused.Reason));
                }
                catch (WebhookRefused refused)
                {
                    Print(new JsonWriter().Add("event", "refused").Add("reason", refused.Reason));
                }
            }
        }

        private static async Task Carry(Json command)
        {
            switch (command["do"].Text)
            {
                case "credentials":
                    service = new Service(baseUrl, command["client_id"].Text, command["client_secret"].Text);
                    break;
                case "verify": await Verify(command); break;
                case "check": await Check(command); break;
                case "follow": await Follow(command); break;
                case "webhook": ReadWebhook(command); break;
                case "web_sign_in": await SignIn(); break;
            }
        }

        private static async Task Verify(Json command)
        {
            time = command.Has("now") ? command["now"].Number : (double?)null;
            string issuer = command.Has("issuer") ? command["issuer"].Text : null;
            verifier = verifier ?? new PlayerVerifier(
                baseUrl, issuer, () => time ?? DateTimeOffset.UtcNow.ToUnixTimeMilliseconds() / 1000.0);
            string factor = command.Has("factor") ? command["factor"].Text : null;
            VerifiedPlayer player = await verifier.Verify(command["jwt"].Text, factor);
            Print(new JsonWriter().Add("event", "verified").Add("user_id", player.UserId).Add("auth", player.Auth));
        }

        private static async Task Check(Json command)
        {
            List<Question> questions = command["questions"].Items
                .Select(item => new Question(item["user_id"].Text, item["application_id"].Integer, item["rule"].Text)).ToList();
            // Not part of the contract: several callers ask at the same time.
            int callers = command.Has("callers") ? (int)command["callers"].Integer : 1;
            IReadOnlyList<bool>[] answers = await Task.WhenAll(Enumerable.Range(0, callers).Select(_ => service.Check(questions)));
            string list = "[" + string.Join(",", answers[0].Select(answer => answer ? "true" : "false")) + "]";
            Print(new JsonWriter().Add("event", "checked").AddRaw("answers", list));
        }

        private static Task Follow(Json command)
        {
            long left = command["count"].Integer;
            return service.Follow(command["after"].Text, change =>
            {
                if (change.Type == "reset") Print(new JsonWriter().Add("event", "reset"));
                else Print(new JsonWriter().Add("event", "change").Add("id", change.Id).Add("type", change.Type));
                // Not part of the contract: what the caller throws looks like a lost connection.
                if (command.Has("throw")) throw new IOException(command["throw"].Text);
                if (change.Type != "reset") left--;
                return Task.FromResult(left > 0);
            });
        }

        /// <summary>Not part of the contract: signs a user of a web site in.</summary>
        private static async Task SignIn()
        {
            var site = new WebSignIn(baseUrl, "site", null, baseUrl + "/callback");
            SignInRequest request = await site.Begin();
            SignedInUser user = await site.Complete(request, request.State, "a code");
            Print(new JsonWriter().Add("event", "signed_in").Add("user_id", user.UserId));
        }

        private static void ReadWebhook(Json command)
        {
            var headers = command["headers"].Members.ToDictionary(member => member.Key, member => member.Value.Text);
            byte[] body = Encoding.UTF8.GetBytes(command["body"].Text);
            Webhook webhook = Webhook.Read(command["secret"].Text, headers, body, command["now"].Number);
            Print(new JsonWriter().Add("event", "webhook").Add("id", webhook.Id).Add("type", webhook.Type));
        }

        private static void Print(JsonWriter written) => Console.WriteLine(written.ToString());
    }
}
