using System;
using System.Security.Cryptography;
using System.Text;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>A player whose JWT was verified.</summary>
    public sealed class VerifiedPlayer
    {
        public string UserId { get; internal set; }
        /// <summary>How the player has signed in: login, otp, token, gsid, guest …</summary>
        public string Auth { get; internal set; }
        public string Nick { get; internal set; }
        /// <summary>All claims, as JSON.</summary>
        public string Claims { get; internal set; }
    }

    /// <summary>Verifies user JWTs without asking the service about each: with its public keys. One object serves all
    /// threads.</summary>
    public sealed class PlayerVerifier
    {
        private readonly KeyCache keys;
        private readonly string issuer;
        private readonly Func<double> now;

        /// <param name="issuer">The public address of the service, if it is reached at another one.</param>
        /// <param name="now">Unix seconds.</param>
        public PlayerVerifier(string baseUrl, string issuer = null, Func<double> now = null)
        {
            string url = baseUrl.TrimEnd('/');
            keys = new KeyCache(url + "/proxy/oauth/keys");
            this.issuer = issuer ?? url;
            this.now = now ?? SignedJwt.Now;
        }

        /// <summary>With a factor, the JWT must belong to the device that sent it. Throws PlayerRefused.</summary>
        public async Task<VerifiedPlayer> Verify(string text, string factor = null)
        {
            double time = now();
            byte[] payload = await SignedJwt.Payload(keys, text, time).ConfigureAwait(false);
            Json claims = Jwt.ParseJson(payload);
            Json ends = claims.Has("ends") ? claims["ends"] : claims["exp"];
            if (claims["typ"].Text != "user_token" || claims["uid"].Text == "" || !SignedJwt.IsTime(claims["exp"]) || !SignedJwt.IsTime(ends))
            {
                throw Jwt.Malformed("this is no user JWT");
            }
            if (claims["iss"].Text != issuer) throw new PlayerRefused("issuer", "the JWT was not issued by " + issuer);
            if (Math.Min(claims["exp"].Number, ends.Number) <= time) throw new PlayerRefused("expired", "the JWT has expired");
            // The claim is no secret: the caller has the JWT. So a plain comparison is enough.
            if (factor != null && claims["fac"].Text != Digest(factor))
            {
                throw new PlayerRefused("factor", "the JWT belongs to another device");
            }
            return new VerifiedPlayer
            {
                UserId = claims["uid"].Text,
                Auth = claims["auth"].Text,
                Nick = claims["nick"].Text,
                Claims = Encoding.UTF8.GetString(payload),
            };
        }

        private static string Digest(string factor)
        {
            using (SHA256 hash = SHA256.Create()) return Jwt.Encode(hash.ComputeHash(Encoding.UTF8.GetBytes(factor)));
        }
    }
}
