using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Runtime.ExceptionServices;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    public sealed class Change
    {
        /// <summary>The place in the stream. Store it, and continue after it. Empty for a reset.</summary>
        public string Id { get; internal set; }
        /// <summary>permissions_changed, user_banned …; reset: changes were missed, so read again what you keep.</summary>
        public string Type { get; internal set; }
        /// <summary>The event, as JSON.</summary>
        public string Data { get; internal set; }
    }

    /// <summary>Server-sent events of the changes. It survives lost connections, restarts and new tokens.</summary>
    internal sealed class ChangeStream
    {
        private const double FirstPauseS = 1;
        private const double MaxPauseS = 30;
        private const double MaxRetryAfterS = 60;
        private static readonly TimeSpan Silence = TimeSpan.FromSeconds(45); // there is a heartbeat every 15 seconds
        private readonly string url;
        private readonly ServiceRequests requests;
        private readonly Func<Change, Task<bool>> handle;
        private string after;
        private double pauseS = FirstPauseS;
        private bool wasRenewed;

        public ChangeStream(string baseUrl, ServiceRequests requests, Func<Change, Task<bool>> handle)
        {
            url = baseUrl + "/api/admin/changes";
            this.requests = requests;
            this.handle = handle;
        }

        public async Task Follow(string cursor, CancellationToken token)
        {
            after = cursor ?? "";
            while (true)
            {
                double? waitS;
                try
                {
                    waitS = await Connect(token).ConfigureAwait(false);
                }
                catch (RequestFailed failed) when (failed.Reason == "unavailable")
                {
                    waitS = pauseS;
                }
                catch (HandleFailed failed)
                {
                    ExceptionDispatchInfo.Capture(failed.InnerException).Throw();
                    throw;
                }
                if (waitS == null) return;
                if (waitS == 0) continue;
                await Task.Delay(TimeSpan.FromSeconds(waitS.Value), token).ConfigureAwait(false);
                pauseS = Math.Min(2 * pauseS, MaxPauseS);
            }
        }

        /// <summary>Returns the seconds until the next connection; null if the caller has had enough.</summary>
        private async Task<double?> Connect(CancellationToken token)
        {
            string bearer = await requests.Token().ConfigureAwait(false);
            using (var silence = CancellationTokenSource.CreateLinkedTokenSource(token))
            using (var request = new HttpRequestMessage(HttpMethod.Get, after == "" ? url : url + "?after=" + Uri.EscapeDataString(after)))
            {
                request.Headers.TryAddWithoutValidation("Authorization", "Bearer " + bearer);
                request.Headers.TryAddWithoutValidation("Accept", "text/event-stream");
                silence.CancelAfter(Silence);
                try
                {
                    using (HttpResponseMessage response = await Http.Client
                        .SendAsync(request, HttpCompletionOption.ResponseHeadersRead, silence.Token).ConfigureAwait(false))
                    {
                        bool isStream = response.Content.Headers.ContentType?.MediaType == "text/event-stream";
                        if ((int)response.StatusCode == 200 && isStream)
                        {
                            wasRenewed = false;
                            return await Read(response, silence).ConfigureAwait(false) ? (double?)null : pauseS;
                        }
                        return await Refused(await Http.Read(response).ConfigureAwait(false), bearer).ConfigureAwait(false);
                    }
                }
                catch (Exception error) when (Http.IsLost(error) && !token.IsCancellationRequested)
                {
                    return pauseS;
                }
            }
        }

        private async Task<double?> Refused(HttpAnswer answer, string bearer)
        {
            if (answer.Status == 400 && after != "")
            {
                return await Pass(new Change { Id = "", Type = "reset", Data = "{}" }).ConfigureAwait(false) ? (double?)0 : null;
            }
            if (answer.Status == 401 && !wasRenewed)
            {
                wasRenewed = true;
                requests.Forget(bearer);
                return 0;
            }
            if (!ServiceRequests.IsPassing(answer.Status)) throw ServiceRequests.FailureOf(url, answer);
            return Math.Min(Math.Max(answer.RetryAfterS ?? pauseS, FirstPauseS), MaxRetryAfterS);
        }

        /// <summary>Returns true if the caller has had enough, false at the end of the stream.</summary>
        private async Task<bool> Read(HttpResponseMessage response, CancellationTokenSource silence)
        {
            Stream stream = await response.Content.ReadAsStreamAsync().ConfigureAwait(false);
            // Some frameworks do not heed the token of a read; the end of the stream ends the read everywhere.
            using (silence.Token.Register(stream.Dispose))
            using (stream)
            {
                var lines = new LineReader(stream);
                var fields = new Dictionary<string, string>();
                for (string line; (line = await lines.Next().ConfigureAwait(false)) != null;)
                {
                    silence.CancelAfter(Silence);
                    pauseS = FirstPauseS; // also after a heartbeat: the service is there
                    if (line != "")
                    {
                        int colon = line.IndexOf(':');
                        if (colon > 0) fields[line.Substring(0, colon)] = line.Substring(colon + 1).TrimStart(' ');
                        continue;
                    }
                    Change change = ChangeOf(fields);
                    fields.Clear();
                    if (change != null && !await Pass(change).ConfigureAwait(false)) return true;
                }
                return false; // what is not complete comes again
            }
        }

        /// <summary>Continues after this change only when the caller has handled it. Returns false if the caller has had
        /// enough.</summary>
        private async Task<bool> Pass(Change change)
        {
            bool isWanted;
            try
            {
                isWanted = await handle(change).ConfigureAwait(false);
            }
            catch (Exception error)
            {
                throw new HandleFailed(error);
            }
            after = change.Id;
            return isWanted;
        }

        /// <summary>Tells what the caller has thrown from the failures of the connection, which are of the same types.</summary>
        private sealed class HandleFailed : Exception
        {
            public HandleFailed(Exception inner) : base(inner.Message, inner)
            {
            }
        }

        /// <summary>Returns null for heartbeats and for members without an event.</summary>
        private static Change ChangeOf(Dictionary<string, string> fields)
        {
            if (!fields.TryGetValue("data", out string data) || !fields.TryGetValue("id", out string id)) return null;
            Json json = Json.Parse(data);
            if (json == null || !json.IsObject) return null;
            return new Change { Id = id, Type = fields.TryGetValue("event", out string type) ? type : "", Data = data };
        }
    }
}
