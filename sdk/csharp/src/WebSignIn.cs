using System;
using System.Collections.Generic;
using System.Linq;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Security.Cryptography;
using System.Text;
using System.Threading.Tasks;

namespace Sso
{
    /// <summary>A sign-in that has begun. Keep it in the session of the browser until the browser comes back.</summary>
    public sealed class SignInRequest
    {
        /// <summary>Where to send the browser.</summary>
        public string Url { get; internal set; }
        public string State { get; internal set; }
        public string Nonce { get; internal set; }
        public string Verifier { get; internal set; }
    }

    /// <summary>A user whose ID token was verified.</summary>
    public sealed class SignedInUser
    {
        /// <summary>The id of the user, which never changes.</summary>
        public string UserId { get; internal set; }
        public string Name { get; internal set; }
        public string Email { get; internal set; }
        /// <summary>All claims of the ID token, as JSON.</summary>
        public string Claims { get; internal set; }
    }

    /// <summary>Signs users of a web site in: authorization code with PKCE, and an ID token that is verified with the key
    /// set of the service. One object serves all threads.</summary>
    public sealed class WebSignIn
    {
        private const int TimeoutS = 10;
        private readonly string issuer;
        private readonly string clientId;
        private readonly string secret;
        private readonly string redirectUri;
        private readonly Func<double> now;
        private volatile Json metadata;
        private volatile KeyCache keys;

        /// <param name="secret">null for a public client.</param>
        /// <param name="now">Unix seconds.</param>
        public WebSignIn(string issuer, string clientId, string secret, string redirectUri, Func<double> now = null)
        {
            this.issuer = issuer.TrimEnd('/');
            this.clientId = clientId;
            this.secret = secret;
            this.redirectUri = redirectUri;
            this.now = now ?? SignedJwt.Now;
        }

        /// <summary>Throws RequestFailed if the service cannot be reached.</summary>
        public async Task<SignInRequest> Begin(string scope = "openid email profile")
        {
            string endpoint = await Endpoint("authorization_endpoint").ConfigureAwait(false);
            var request = new SignInRequest { State = Random(), Nonce = Random(), Verifier = Random() };
            string challenge;
            using (SHA256 hash = SHA256.Create()) challenge = Jwt.Encode(hash.ComputeHash(Encoding.ASCII.GetBytes(request.Verifier)));
            request.Url = WithParameters(endpoint, new Dictionary<string, string>
            {
                { "response_type", "code" },
                { "client_id", clientId },
                { "redirect_uri", redirectUri },
                { "scope", scope },
                { "state", request.State },
                { "nonce", request.Nonce },
                { "code_challenge", challenge },
                { "code_challenge_method", "S256" },
            });
            return request;
        }

        /// <summary>Completes a sign-in with the parameters of the redirect URI. Throws SignInRefused, or RequestFailed if the
        /// service cannot be reached.</summary>
        /// <param name="request">The one in the session of this browser; null if there is none.</param>
        public async Task<SignedInUser> Complete(SignInRequest request, string state, string code, string error = null)
        {
            if (request == null || string.IsNullOrEmpty(state) || state != request.State)
            {
                throw new SignInRefused("state", "this sign-in did not begin in this browser");
            }
            if (!string.IsNullOrEmpty(error)) throw new SignInRefused("denied", "the service has answered " + error);
            if (string.IsNullOrEmpty(code)) throw new SignInRefused("code", "the answer has no code");
            HttpAnswer answer = await Redeem(code, request.Verifier).ConfigureAwait(false);
            if (answer == null || answer.Status == 429 || answer.Status >= 500) throw new RequestFailed("unavailable", "the code could not be redeemed");
            if (answer.Status != 200 || answer.Body == null) throw new SignInRefused("code", "the code was refused");
            try
            {
                return await Verify(answer.Body["id_token"].Text, request.Nonce).ConfigureAwait(false);
            }
            catch (PlayerRefused refused) when (refused.Reason == "unavailable")
            {
                throw new RequestFailed("unavailable", refused.Message);
            }
            catch (PlayerRefused refused)
            {
                throw new SignInRefused("token", refused.Message);
            }
        }

        /// <summary>Where to send the browser to sign out of the service, too.</summary>
        public async Task<string> LogoutUrl(string afterwards)
        {
            string endpoint = await Endpoint("end_session_endpoint").ConfigureAwait(false);
            var parameters = new Dictionary<string, string> { { "client_id", clientId }, { "post_logout_redirect_uri", afterwards } };
            return WithParameters(endpoint, parameters);
        }

        private async Task<HttpAnswer> Redeem(string code, string verifier)
        {
            var form = new Dictionary<string, string>
            {
                { "grant_type", "authorization_code" },
                { "code", code },
                { "redirect_uri", redirectUri },
                { "code_verifier", verifier },
            };
            if (secret == null) form["client_id"] = clientId;
            string endpoint = await Endpoint("token_endpoint").ConfigureAwait(false);
            var request = new HttpRequestMessage(HttpMethod.Post, endpoint) { Content = new FormUrlEncodedContent(form) };
            request.Headers.ConnectionClose = true; // a code must not be sent twice
            if (secret != null)
            {
                string pair = Uri.EscapeDataString(clientId) + ":" + Uri.EscapeDataString(secret);
                request.Headers.Authorization =
                    new AuthenticationHeaderValue("Basic", Convert.ToBase64String(Encoding.ASCII.GetBytes(pair)));
            }
            return await Http.Send(request, TimeoutS).ConfigureAwait(false);
        }

        private async Task<SignedInUser> Verify(string idToken, string nonce)
        {
            double time = now();
            byte[] payload = await SignedJwt.Payload(keys, idToken, time).ConfigureAwait(false);
            Json claims = Jwt.ParseJson(payload);
            Json audience = claims["aud"];
            bool namesUs = audience.Text == clientId || audience.Items.Any(one => one.Text == clientId);
            bool isForUs = namesUs && (claims["azp"].Text == clientId || (audience.Items.Count < 2 && !claims.Has("azp")));
            if (claims["iss"].Text != issuer) throw new PlayerRefused("issuer", "the ID token was not issued by " + issuer);
            if (!isForUs) throw new PlayerRefused("malformed", "the ID token is for another client");
            if (claims["nonce"].Text != nonce) throw new PlayerRefused("malformed", "the ID token is of another sign-in");
            if (!SignedJwt.IsTime(claims["exp"]) || claims["exp"].Number <= time)
            {
                throw new PlayerRefused("expired", "the ID token has expired");
            }
            if (claims["sub"].Text == "") throw Jwt.Malformed("the ID token names no user");
            return new SignedInUser
            {
                UserId = claims["sub"].Text,
                Name = claims["name"].Text,
                Email = claims["email"].Text,
                Claims = Encoding.UTF8.GetString(payload),
            };
        }

        /// <summary>The addresses of the service are read once. If that fails, the next sign-in tries again.</summary>
        private async Task<string> Endpoint(string name)
        {
            if (metadata == null)
            {
                HttpAnswer answer = await Http.Get(issuer + "/.well-known/openid-configuration", TimeoutS).ConfigureAwait(false);
                if (answer == null || answer.Status != 200 || answer.Body == null)
                {
                    throw new RequestFailed("unavailable", "the configuration of the service cannot be read");
                }
                if (answer.Body["issuer"].Text != issuer)
                {
                    throw new RequestFailed("not_a_service", "the issuer is not " + issuer);
                }
                keys = new KeyCache(answer.Body["jwks_uri"].Text);
                metadata = answer.Body;
            }
            return metadata[name].Text;
        }

        private static string WithParameters(string url, Dictionary<string, string> parameters) =>
            url + "?" + string.Join("&", parameters.Select(one => one.Key + "=" + Uri.EscapeDataString(one.Value)));

        private static string Random()
        {
            var bytes = new byte[32];
            using (RandomNumberGenerator generator = RandomNumberGenerator.Create()) generator.GetBytes(bytes);
            return Jwt.Encode(bytes);
        }
    }
}
