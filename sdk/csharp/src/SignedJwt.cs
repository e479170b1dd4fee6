using System;
using System.Security.Cryptography;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>Checks the signature of a JWT with the keys of the service.</summary>
    internal static class SignedJwt
    {
        public static double Now() => DateTimeOffset.UtcNow.ToUnixTimeMilliseconds() / 1000.0;

        /// <summary>Returns the claims, as bytes of JSON. Throws PlayerRefused.</summary>
        public static async Task<byte[]> Payload(KeyCache keys, string text, double now)
        {
            Jwt jwt = Jwt.Parse(text);
            if (jwt.Algorithm != "RS256" && jwt.Algorithm != "ES256" && jwt.Algorithm != "EdDSA")
            {
                throw new PlayerRefused("signature", "the algorithm is none of the service");
            }
            PublicKey key = await keys.Find(jwt.Kid, now).ConfigureAwait(false);
            // The algorithm is that of the key. A JWT cannot choose another one.
            if (jwt.Algorithm != key.Algorithm || !IsSigned(jwt, key)) throw new PlayerRefused("signature", "the signature is wrong");
            return Jwt.Decode(jwt.Payload);
        }

        public static bool IsTime(Json value) =>
            value.IsNumber && Math.Abs(value.Number) < 9007199254740992 && Math.Floor(value.Number) == value.Number;

        private static bool IsSigned(Jwt jwt, PublicKey key)
        {
            try
            {
                return key.Verify(jwt.Signed, jwt.Signature);
            }
            catch (CryptographicException)
            {
                return false;
            }
            catch (PlatformNotSupportedException error)
            {
                throw new PlayerRefused("signature", error.Message);
            }
        }
    }
}
