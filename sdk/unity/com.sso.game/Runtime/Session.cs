using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>A session of the sign-in: a link for the browser, two words, and one open request for the result.</summary>
    internal sealed class Session
    {
        private const string Path = "/proxy/api/gameSession/";
        private const int RequestS = 15;
        private const int PollS = 45; // longer than the 30 seconds for which the service holds a poll
        private static readonly HashSet<int> FinalCodes = new HashSet<int> { 1000, 1008, 1009, 4403, 4404 };

        private readonly ITransport transport;
        private readonly string baseUrl;
        private SigningKey key;
        private string gsid;
        private string proof = ""; // proves that a request comes from this game, as the query of an address

        private Session(ITransport transport, string baseUrl)
        {
            this.transport = transport;
            this.baseUrl = baseUrl;
        }

        public string Words { get; private set; }
        public string Link => baseUrl + "/?gsid=" + gsid;

        public static async Task<Session> Register(
            ITransport transport,
            string baseUrl,
            JsonWriter fields,
            Dictionary<string, string> headers,
            bool sign,
            CancellationToken token)
        {
            var session = new Session(transport, baseUrl);
            if (sign)
            {
                session.key = SigningKey.Create();
                fields.Add("public_key", session.key.PublicKey);
            }
            Answer answer = await First(transport, baseUrl + Path + "getGsid", fields.ToString(), headers, token);
            if (!answer.IsOk) throw SignInFailed.Of(answer);
            session.gsid = answer.Body["gsid"].Text;
            session.Words = answer.Body["match"].Text;
            int query = answer.Location.IndexOf('?');
            if (query >= 0) session.proof = answer.Location.Substring(query);
            return session;
        }

        /// <summary>Sends the first request to an address, where no service may be.</summary>
        public static async Task<Answer> First(
            ITransport transport, string url, string body, Dictionary<string, string> headers, CancellationToken token)
        {
            try
            {
                return Answer.Of(url, await transport.Post(url, body, headers, RequestS, token));
            }
            catch (ConnectionLost error)
            {
                throw new SignInFailed(Reason.Unavailable, error.Message);
            }
            catch (OperationCanceledException)
            {
                throw SignInFailed.GaveUp();
            }
        }

        /// <summary>Polls until the player has signed in. Returns the answer with the login. Lost connections, 429
        /// and answers of a proxy before the service (502 to 504) are one outage.</summary>
        public async Task<Json> Result(double maxOutageS, CancellationToken token)
        {
            Stopwatch outage = null;
            while (true)
            {
                double delay = 0;
                string problem = null;
                try
                {
                    Answer answer = await Send("getGsidResult", new JsonWriter(), PollS, token);
                    string status = answer.Body["status"].Text;
                    if (status == "OK") return answer.Body;
                    if (answer.IsOutage)
                    {
                        problem = "HTTP " + answer.Status;
                        delay = answer.RetryAfterS;
                    }
                    else if (status == "RETRY") delay = Math.Max(0, Math.Min(answer.Body["delay"].Number, 60));
                    else if (status != "CANCELLED") throw SignInFailed.Of(answer);
                }
                catch (ConnectionLost error)
                {
                    problem = error.Message;
                    delay = 1;
                }
                outage = problem == null ? null : outage ?? Stopwatch.StartNew();
                if (outage?.Elapsed.TotalSeconds > maxOutageS) throw new SignInFailed(Reason.Unavailable, problem);
                await transport.Delay(delay, token);
            }
        }

        /// <summary>Tells the service how the sign-in ended. "Error" makes the link unusable.</summary>
        public async Task Close(string status)
        {
            try
            {
                await Send("closeGsid", new JsonWriter().Add("status", status), 3, CancellationToken.None);
            }
            catch (Exception)
            {
                // Nothing depends on the answer.
            }
        }

        /// <summary>Follows the WebSocket, and connects again when it is lost.</summary>
        public async Task FollowStages(Action<string> show, CancellationToken token)
        {
            string url = "ws" + baseUrl.Substring("http".Length) + "/ws/gameSession/refresh/" + gsid + proof;
            while (!token.IsCancellationRequested)
            {
                int code = await transport.Follow(url, text => ShowStage(text, show), token);
                if (FinalCodes.Contains(code)) return;
                await transport.Delay(1, token);
            }
        }

        private static void ShowStage(string text, Action<string> show)
        {
            Json message = Json.Parse(text);
            if (message != null && message["event"].Text == "stage" && message["stage"].Text != "") show(message["stage"].Text);
        }

        private async Task<Answer> Send(string name, JsonWriter fields, int timeoutS, CancellationToken token)
        {
            string body = fields.Add("gsid", gsid).ToString(); // the signature covers exactly this text
            string url = baseUrl + Path + name + (key == null ? proof : "");
            var headers = new Dictionary<string, string>();
            if (key != null) headers["Request-Sign"] = key.Sign(body);
            return Answer.Of(url, await transport.Post(url, body, headers, timeoutS, token));
        }
    }
}
