using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>The public keys of the service. An old set stays usable while the service is away.</summary>
    internal sealed class KeyCache
    {
        private const double MaxAgeS = 300; // a key that was retired is forgotten after this time
        private const double UnknownKeyS = 10; // unknown keys fetch the set again at most once in this time
        private const double RetryS = 5; // after a fetch that failed
        private const int FetchS = 5;
        private const double ClockStepS = 10; // further back the clock was set; another thread may have read it a bit later

        private readonly string url;
        private readonly SemaphoreSlim fetching = new SemaphoreSlim(1, 1);
        private volatile Dictionary<string, PublicKey> keys;
        private double fetchedAt;
        private double retryAt;
        private double unknownAt;

        public KeyCache(string url)
        {
            this.url = url;
        }

        /// <summary>Times are Unix seconds. Throws PlayerRefused with unknown_key or unavailable.</summary>
        public async Task<PublicKey> Find(string kid, double now)
        {
            // One caller fetches. Others wait for it only if they cannot go on with the old set.
            bool isKnown = keys != null && keys.ContainsKey(kid);
            if (await fetching.WaitAsync(isKnown ? 0 : Timeout.Infinite).ConfigureAwait(false))
            {
                try
                {
                    if (MustFetch(kid, now)) await Fetch(now).ConfigureAwait(false);
                }
                finally
                {
                    fetching.Release();
                }
            }
            Dictionary<string, PublicKey> current = keys;
            if (current == null) throw new PlayerRefused("unavailable", "the keys of the service cannot be fetched");
            if (!current.TryGetValue(kid, out PublicKey key)) throw new PlayerRefused("unknown_key", "the service has no such key");
            return key;
        }

        private bool MustFetch(string kid, double now)
        {
            if (retryAt > now + RetryS || unknownAt > now + UnknownKeyS) retryAt = unknownAt = 0; // the clock was set back
            bool isOld = keys == null || now - fetchedAt >= MaxAgeS || fetchedAt - now > ClockStepS;
            bool mustFetch = isOld && now >= retryAt;
            if (!mustFetch && keys != null && !keys.ContainsKey(kid) && now >= unknownAt)
            {
                unknownAt = now + UnknownKeyS;
                mustFetch = true;
            }
            if (mustFetch) retryAt = now + RetryS;
            return mustFetch;
        }

        private async Task Fetch(double now)
        {
            HttpAnswer answer = await Http.Get(url, FetchS).ConfigureAwait(false);
            if (answer == null || answer.Status != 200 || answer.Body == null || !answer.Body.Has("keys")) return;
            IEnumerable<PublicKey> imported = answer.Body["keys"].Items.Select(PublicKey.Import).Where(key => key != null);
            keys = imported.GroupBy(key => key.Kid).ToDictionary(group => group.Key, group => group.First());
            fetchedAt = now;
            retryAt = 0;
        }
    }
}
