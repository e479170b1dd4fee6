#if !UNITY_WEBGL || UNITY_EDITOR
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net.Http;
using System.Net.WebSockets;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>Requests with HttpClient, for game servers, tools and tests: wherever there are threads.</summary>
    public sealed class HttpClientTransport : ITransport
    {
        private static readonly HttpClient Http = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false })
        {
            Timeout = Timeout.InfiniteTimeSpan,
            MaxResponseContentBufferSize = RawAnswer.MaxSize,
        };

        public async Task<RawAnswer> Post(
            string url, string body, IReadOnlyDictionary<string, string> headers, int timeoutS, CancellationToken token)
        {
            using (var limit = CancellationTokenSource.CreateLinkedTokenSource(token))
            using (var request = new HttpRequestMessage(HttpMethod.Post, url))
            {
                limit.CancelAfter(TimeSpan.FromSeconds(timeoutS));
                request.Content = new StringContent(body, Encoding.UTF8, "application/json");
                foreach (KeyValuePair<string, string> header in headers) request.Headers.TryAddWithoutValidation(header.Key, header.Value);
                try
                {
                    using (HttpResponseMessage response = await Http.SendAsync(request, limit.Token))
                    {
                        return new RawAnswer
                        {
                            Status = (int)response.StatusCode,
                            Content = await response.Content.ReadAsStringAsync(),
                            Location = Header(response, "Location"),
                            RetryAfter = Header(response, "Retry-After"),
                        };
                    }
                }
                catch (OperationCanceledException) when (!token.IsCancellationRequested)
                {
                    throw new ConnectionLost("no answer within " + timeoutS + " s");
                }
                catch (Exception error) when (error is HttpRequestException || error is System.IO.IOException)
                {
                    throw new ConnectionLost(error.Message);
                }
            }
        }

        public Task Delay(double seconds, CancellationToken token) => Task.Delay(TimeSpan.FromSeconds(seconds), token);

        public async Task<int> Follow(string url, Action<string> onText, CancellationToken token)
        {
            using (var socket = new ClientWebSocket())
            {
                try
                {
                    await socket.ConnectAsync(new Uri(url), token);
                    var buffer = new byte[8192];
                    while (true)
                    {
                        WebSocketReceiveResult part = await socket.ReceiveAsync(new ArraySegment<byte>(buffer), token);
                        if (part.MessageType == WebSocketMessageType.Close) return (int)(part.CloseStatus ?? 0);
                        if (part.EndOfMessage) onText(Encoding.UTF8.GetString(buffer, 0, part.Count));
                    }
                }
                catch (WebSocketException)
                {
                    return 0;
                }
            }
        }

        private static string Header(HttpResponseMessage response, string name) =>
            response.Headers.TryGetValues(name, out IEnumerable<string> values) ? values.First() : "";
    }
}
#endif
