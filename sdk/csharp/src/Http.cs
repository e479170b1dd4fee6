using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    internal sealed class HttpAnswer
    {
        public int Status;
        public Json Body; // null if it is no JSON object
        public double? RetryAfterS;
    }

    /// <summary>Sends requests. An answer that is null was lost.</summary>
    internal static class Http
    {
        public const int MaxBytes = 16 << 20; // of an answer, and of a line of a stream
        public static readonly HttpClient Client =
            new HttpClient(new HttpClientHandler { AllowAutoRedirect = false })
            {
                Timeout = Timeout.InfiniteTimeSpan,
                MaxResponseContentBufferSize = MaxBytes,
            };

        /// <summary>The connection is not kept: a framework may repeat a request by itself on one that was lost.</summary>
        public static Task<HttpAnswer> Get(string url, int timeoutS)
        {
            var request = new HttpRequestMessage(HttpMethod.Get, url);
            request.Headers.ConnectionClose = true;
            return Send(request, timeoutS);
        }

        public static async Task<HttpAnswer> Send(HttpRequestMessage request, int timeoutS)
        {
            using (var limit = new CancellationTokenSource(TimeSpan.FromSeconds(timeoutS)))
            using (request)
            {
                try
                {
                    using (HttpResponseMessage response = await Client.SendAsync(request, limit.Token).ConfigureAwait(false))
                    {
                        return await Read(response).ConfigureAwait(false);
                    }
                }
                catch (Exception error) when (IsLost(error))
                {
                    return null;
                }
            }
        }

        public static async Task<HttpAnswer> Read(HttpResponseMessage response)
        {
            await response.Content.LoadIntoBufferAsync(MaxBytes).ConfigureAwait(false);
            Json body = Json.Parse(await response.Content.ReadAsStringAsync().ConfigureAwait(false));
            return new HttpAnswer
            {
                Status = (int)response.StatusCode,
                Body = body != null && body.IsObject ? body : null,
                RetryAfterS = RetryAfter(response),
            };
        }

        public static bool IsLost(Exception error) =>
            error is HttpRequestException || error is IOException || error is OperationCanceledException
            || error is WebException || error is ObjectDisposedException;

        private static double? RetryAfter(HttpResponseMessage response)
        {
            if (!response.Headers.TryGetValues("Retry-After", out IEnumerable<string> values)) return null;
            foreach (string value in values)
            {
                if (value.Length < 9 && int.TryParse(value, out int seconds) && seconds >= 0) return seconds;
            }
            return null;
        }
    }
}
