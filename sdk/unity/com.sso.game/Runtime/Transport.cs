using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>What a game needs from its engine: requests, and waiting without a thread.</summary>
    public interface ITransport
    {
        /// <summary>Sends JSON. Throws ConnectionLost, also for an answer that is longer than RawAnswer.MaxSize, or
        /// OperationCanceledException if the player gave up.</summary>
        Task<RawAnswer> Post(
            string url, string body, IReadOnlyDictionary<string, string> headers, int timeoutS, CancellationToken token);

        Task Delay(double seconds, CancellationToken token);

        /// <summary>Follows a WebSocket until it ends, and returns its close code: 0 if the connection was lost.
        /// Null where there is none.</summary>
        Task<int> Follow(string url, Action<string> onText, CancellationToken token);
    }

    public sealed class RawAnswer
    {
        public const int MaxSize = 1024 * 1024;
        public int Status;
        public string Content = "";
        public string Location = "";
        public string RetryAfter = "";
    }

    /// <summary>The connection was lost, or there was none. The request may have had its effect.</summary>
    public sealed class ConnectionLost : Exception
    {
        public ConnectionLost(string message) : base(message) { }
    }

    internal sealed class Answer
    {
        public int Status;
        public Json Body;
        public string Location;
        private string retryAfter;

        public bool IsOutage => Status == 429 || (Status >= 502 && Status <= 504);
        public bool IsOk => Body["status"].Text == "OK";
        /// <summary>For how many seconds to wait after an outage: at least 1, so that nobody asks without a pause.</summary>
        public double RetryAfterS => int.TryParse(retryAfter, out int seconds) ? Math.Max(1, Math.Min(seconds, 60)) : 1;

        public static Answer Of(string url, RawAnswer raw)
        {
            Json body = Json.Parse(raw.Content);
            var answer = new Answer { Status = raw.Status, Location = raw.Location, retryAfter = raw.RetryAfter };
            if (body != null && body.Has("status")) answer.Body = body;
            else if (answer.IsOutage) answer.Body = Json.Parse("{}"); // of a proxy before the service
            else throw new SignInFailed(Reason.NotAService, new Uri(url).Authority + " is not a sign-on service");
            return answer;
        }
    }
}
