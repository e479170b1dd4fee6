using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Net.Http;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>Requests with the token of a service client: it is fetched once, and again before it ends.</summary>
    internal sealed class ServiceRequests
    {
        private const int RequestS = 15;
        private const int Tries = 3;
        private const double MaxPauseS = 30;
        private const double RenewBeforeS = 30;
        private const double ShortPauseS = 0.5;
        private const double MinRetryAfterS = 1;

        private readonly string baseUrl;
        private readonly string clientId; // null: no credentials, for a replica
        private readonly string clientSecret;
        private readonly SemaphoreSlim fetching = new SemaphoreSlim(1, 1);
        private string token = "";
        private double lifeS;
        private Stopwatch age = new Stopwatch();
        private int failures; // to fetch a token
        private RequestFailed failure; // of the last fetch; null if it has succeeded

        public ServiceRequests(string baseUrl, string clientId, string clientSecret)
        {
            this.baseUrl = baseUrl;
            this.clientId = clientId;
            this.clientSecret = clientSecret;
        }

        public bool HasCredentials => clientId != null;

        /// <summary>Returns "" without credentials.</summary>
        public async Task<string> Token()
        {
            if (clientId == null) return "";
            int before = Volatile.Read(ref failures);
            await fetching.WaitAsync().ConfigureAwait(false);
            try
            {
                if (token != "" && age.Elapsed.TotalSeconds <= lifeS - RenewBeforeS) return token;
                // The fetch that this call has waited for has failed. Another one for each that waits would take too long.
                bool hasFailed = failure != null && failures != before;
                if (hasFailed) throw new RequestFailed(failure.Reason, failure.Message, failure.Status);
                await FetchToken().ConfigureAwait(false);
                return token;
            }
            finally
            {
                fetching.Release();
            }
        }

        /// <summary>Forgets a token that was refused, unless it was replaced meanwhile.</summary>
        public void Forget(string refused)
        {
            Interlocked.CompareExchange(ref token, "", refused);
        }

        /// <summary>Sends JSON with the token, and once more with a new token after 401.</summary>
        public async Task<Json> Post(string path, string body)
        {
            string bearer = await Token().ConfigureAwait(false);
            try
            {
                return await Ask(path, body, bearer).ConfigureAwait(false);
            }
            catch (RequestFailed failed) when (failed.Status == 401 && bearer != "")
            {
                Forget(bearer);
            }
            return await Ask(path, body, await Token().ConfigureAwait(false)).ConfigureAwait(false);
        }

        public static bool IsPassing(int status) => status == 429 || (status >= 502 && status <= 504);

        public static RequestFailed FailureOf(string url, HttpAnswer answer)
        {
            if (answer == null) return new RequestFailed("unavailable", url + " cannot be reached");
            string message = answer.Body != null && answer.Body["error"].Text != "" ? answer.Body["error"].Text : "HTTP " + answer.Status;
            if (answer.Status == 401 || answer.Status == 403) return new RequestFailed("refused", message, answer.Status);
            if (answer.Status == 429 || answer.Status >= 500) return new RequestFailed("unavailable", message, answer.Status);
            if (answer.Status >= 400 && answer.Body != null) return new RequestFailed("invalid", message, answer.Status);
            return new RequestFailed("not_a_service", url + " is not a sign-on service (" + message + ")", answer.Status);
        }

        private Task<Json> Ask(string path, string body, string bearer) => Repeated(path, () =>
        {
            var request = new HttpRequestMessage(HttpMethod.Post, baseUrl + path);
            request.Content = new StringContent(body, Encoding.UTF8, "application/json");
            if (bearer != "") request.Headers.TryAddWithoutValidation("Authorization", "Bearer " + bearer);
            return request;
        });

        /// <summary>Needs the semaphore.</summary>
        private async Task FetchToken()
        {
            try
            {
                await RequestToken().ConfigureAwait(false);
                failure = null;
            }
            catch (RequestFailed failed)
            {
                failure = failed;
                failures++;
                throw;
            }
        }

        private async Task RequestToken()
        {
            const string path = "/proxy/oauth/token";
            var form = new Dictionary<string, string>
            {
                ["grant_type"] = "client_credentials", ["client_id"] = clientId, ["client_secret"] = clientSecret,
            };
            Json body = await Repeated(path, () =>
                new HttpRequestMessage(HttpMethod.Post, baseUrl + path) { Content = new FormUrlEncodedContent(form) }).ConfigureAwait(false);
            if (body["access_token"].Text == "") throw new RequestFailed("not_a_service", "there is no access token");
            lifeS = body["expires_in"].Number;
            age = Stopwatch.StartNew();
            token = body["access_token"].Text;
        }

        /// <summary>All requests here only ask, so they may be repeated.</summary>
        private async Task<Json> Repeated(string path, Func<HttpRequestMessage> make)
        {
            for (int number = 1; ; number++)
            {
                HttpAnswer answer = await Http.Send(make(), RequestS).ConfigureAwait(false);
                bool isOk = answer != null && answer.Status >= 200 && answer.Status < 300;
                if (isOk && answer.Body != null) return answer.Body;
                double pauseS = answer?.RetryAfterS == null ? ShortPauseS : Math.Max(answer.RetryAfterS.Value, MinRetryAfterS);
                bool mayRepeat = (answer == null || IsPassing(answer.Status)) && pauseS <= MaxPauseS && number < Tries;
                if (!mayRepeat) throw FailureOf(baseUrl + path, answer);
                await Task.Delay(TimeSpan.FromSeconds(pauseS)).ConfigureAwait(false);
            }
        }
    }
}
