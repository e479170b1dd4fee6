using System;
using System.Linq;
using System.Text;
using System.Text.RegularExpressions;

namespace Sso
{
    /// <summary>A JWT that is not verified yet.</summary>
    internal sealed class Jwt
    {
        private const int MaxLength = 16 * 1024;
        private static readonly Regex Shape = new Regex(@"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\z");
        private static readonly string[] Unsupported = { "crit", "zip", "b64" }; // would change how it is read

        public string Kid { get; private set; }
        public string Algorithm { get; private set; }
        public byte[] Signed { get; private set; }
        public byte[] Signature { get; private set; }
        public string Payload { get; private set; }

        public static Jwt Parse(string text)
        {
            if (text == null || text.Length > MaxLength || !Shape.IsMatch(text)) throw Malformed("this is no JWT");
            string[] parts = text.Split('.');
            Json header = ParseJson(Decode(parts[0]));
            string kid = header["kid"].Text;
            if (kid == "") throw Malformed("the JWT has no kid");
            bool isJwt = !header.Has("typ") || header["typ"].Text.ToUpperInvariant() == "JWT";
            if (!isJwt || Unsupported.Any(header.Has)) throw Malformed("this is another kind of JWT");
            return new Jwt
            {
                Kid = kid,
                Algorithm = header["alg"].Text,
                Signed = Encoding.ASCII.GetBytes(parts[0] + "." + parts[1]),
                Signature = Decode(parts[2]),
                Payload = parts[1],
            };
        }

        public static Json ParseJson(byte[] content)
        {
            Json json = Json.Parse(ReadText(content));
            if (json == null || !json.IsObject) throw Malformed("a part of the JWT is no JSON object");
            return json;
        }

        public static byte[] Decode(string part)
        {
            try
            {
                string text = part.Replace('-', '+').Replace('_', '/');
                return Convert.FromBase64String(text.PadRight((text.Length + 3) / 4 * 4, '='));
            }
            catch (FormatException)
            {
                throw Malformed("a part of the JWT is not base64url");
            }
        }

        public static string Encode(byte[] content) =>
            Convert.ToBase64String(content).TrimEnd('=').Replace('+', '-').Replace('/', '_');

        public static PlayerRefused Malformed(string message) => new PlayerRefused("malformed", message);

        private static string ReadText(byte[] content)
        {
            try
            {
                return new UTF8Encoding(false, true).GetString(content);
            }
            catch (ArgumentException)
            {
                throw Malformed("a part of the JWT is no UTF-8");
            }
        }
    }
}
