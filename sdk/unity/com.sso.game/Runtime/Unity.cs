#if UNITY_5_3_OR_NEWER
using System;
using System.Collections;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using UnityEngine;
using UnityEngine.Networking;

namespace Sso
{
    /// <summary>Requests with UnityWebRequest, on the main thread: it works on all platforms, WebGL too.</summary>
    public sealed class UnityTransport : ITransport
    {
        public async Task<RawAnswer> Post(
            string url, string body, IReadOnlyDictionary<string, string> headers, int timeoutS, CancellationToken token)
        {
            using (var request = new UnityWebRequest(url, "POST"))
            {
                request.uploadHandler = new UploadHandlerRaw(Encoding.UTF8.GetBytes(body));
                request.downloadHandler = new DownloadHandlerBuffer();
                request.timeout = timeoutS;
                request.redirectLimit = 0;
                request.SetRequestHeader("Content-Type", "application/json");
                foreach (KeyValuePair<string, string> header in headers) request.SetRequestHeader(header.Key, header.Value);
                UnityWebRequestAsyncOperation sending = request.SendWebRequest();
                while (!sending.isDone)
                {
                    if (token.IsCancellationRequested || request.downloadedBytes > RawAnswer.MaxSize) request.Abort();
                    token.ThrowIfCancellationRequested();
                    await Task.Yield(); // until the next frame
                }
                if (request.downloadedBytes > RawAnswer.MaxSize) throw new ConnectionLost("the answer is too long");
                if (IsLost(request)) throw new ConnectionLost(request.error);
                return new RawAnswer
                {
                    Status = (int)request.responseCode,
                    Content = request.downloadHandler.text,
                    Location = request.GetResponseHeader("Location") ?? "",
                    RetryAfter = request.GetResponseHeader("Retry-After") ?? "",
                };
            }
        }

        /// <summary>The connection may be lost after the status has arrived. A redirect is an answer, although Unity reports
        /// it as an error.</summary>
        private static bool IsLost(UnityWebRequest request)
        {
            if (request.responseCode >= 300 && request.responseCode < 400) return false;
            return request.responseCode == 0 || request.result == UnityWebRequest.Result.ConnectionError ||
                request.result == UnityWebRequest.Result.DataProcessingError;
        }

        public async Task Delay(double seconds, CancellationToken token)
        {
            double end = Time.realtimeSinceStartupAsDouble + seconds;
            while (Time.realtimeSinceStartupAsDouble < end)
            {
                token.ThrowIfCancellationRequested();
                await Task.Yield();
            }
        }

        public Task<int> Follow(string url, Action<string> onText, CancellationToken token)
        {
#if UNITY_WEBGL && !UNITY_EDITOR
            return Task.FromResult(1000); // no stages are shown; the poll does without them
#else
            return new HttpClientTransport().Follow(url, onText, token);
#endif
        }
    }

    /// <summary>Keeps values in PlayerPrefs. They are readable for whoever has the device.</summary>
    public sealed class PlayerPrefsStore : IStore
    {
        private readonly string prefix;

        public PlayerPrefsStore(string prefix = "sso.")
        {
            this.prefix = prefix;
        }

        public string Get(string name) => PlayerPrefs.HasKey(prefix + name) ? PlayerPrefs.GetString(prefix + name) : null;

        public void Set(string name, string value)
        {
            if (value == null) PlayerPrefs.DeleteKey(prefix + name);
            else PlayerPrefs.SetString(prefix + name, value);
            PlayerPrefs.Save();
        }
    }

    /// <summary>The calls of a game as coroutines: <c>yield return Routine.Of(game.SignIn(options), done, failed)</c>.</summary>
    public static class Routine
    {
        public static IEnumerator Of<T>(Task<T> task, Action<T> done, Action<SignInFailed> failed)
        {
            while (!task.IsCompleted) yield return null;
            if (task.Exception?.InnerException is SignInFailed failure) failed(failure);
            else if (task.IsFaulted) throw task.Exception;
            else done(task.Result);
        }
    }
}
#endif
