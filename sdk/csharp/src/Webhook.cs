using System;
using System.Collections.Generic;
using System.Linq;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;

namespace Sso
{
    /// <summary>An event that the service has sent.</summary>
    public sealed class Webhook
    {
        private const double MaxAgeS = 300;
        private static readonly Regex Header = new Regex(@"^t=([0-9]{1,15}),v1=([^,]*)\z");

        /// <summary>A repetition has the same id.</summary>
        public string Id { get; private set; }
        public string Type { get; private set; }
        /// <summary>The event, as JSON.</summary>
        public string Data { get; private set; }

        /// <summary>Reads a request whose body, as it was received, is signed with the secret. Throws WebhookRefused.</summary>
        /// <param name="now">Unix seconds; the clock of this machine without it.</param>
        public static Webhook Read(
            string secret, IEnumerable<KeyValuePair<string, string>> headers, byte[] body, double? now = null)
        {
            string text = headers
                .Where(header => string.Equals(header.Key, "Webhook-Signature", StringComparison.OrdinalIgnoreCase))
                .Select(header => header.Value).FirstOrDefault() ?? "";
            Match match = Header.Match(text);
            if (!match.Success)
            {
                throw new WebhookRefused("malformed", "Webhook-Signature: expected t=<Unix seconds>,v1=<signature>");
            }
            string time = match.Groups[1].Value;
            // Everybody can sign with an empty secret.
            if (string.IsNullOrEmpty(secret)) throw new WebhookRefused("signature", "the secret is empty");
            if (!AreEqual(Signature(secret, time, body), match.Groups[2].Value))
            {
                throw new WebhookRefused("signature", "the signature is wrong");
            }
            double age = (now ?? DateTimeOffset.UtcNow.ToUnixTimeMilliseconds() / 1000.0) - double.Parse(time);
            if (Math.Abs(age) > MaxAgeS) throw new WebhookRefused("old", "the request is too old: it may be a recorded one");
            string data = Encoding.UTF8.GetString(body);
            Json json = Json.Parse(data);
            if (json == null || json["id"].Text == "") throw new WebhookRefused("malformed", "the body is no event");
            string type = json["type"].Text;
            return new Webhook { Id = json["id"].Text, Type = type == "" ? "permissions_changed" : type, Data = data };
        }

        private static string Signature(string secret, string time, byte[] body)
        {
            using (var hmac = new HMACSHA256(Encoding.UTF8.GetBytes(secret)))
            {
                byte[] signed = Encoding.UTF8.GetBytes(time + ".").Concat(body).ToArray();
                return string.Concat(hmac.ComputeHash(signed).Select(b => b.ToString("x2")));
            }
        }

        /// <summary>Compares in constant time.</summary>
        private static bool AreEqual(string expected, string found)
        {
            if (expected.Length != found.Length) return false;
            int difference = 0;
            for (int i = 0; i < expected.Length; i++) difference |= expected[i] ^ found[i];
            return difference == 0;
        }
    }
}
