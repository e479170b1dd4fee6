using System;
using System.Security.Cryptography;

namespace Sso
{
    /// <summary>A public key of the service.</summary>
    internal sealed class PublicKey
    {
        public string Kid { get; private set; }
        public string Algorithm { get; private set; }
        private Func<byte[], byte[], bool> verify; // null: the framework has no such algorithm

        /// <summary>Throws PlatformNotSupportedException if this framework cannot verify the algorithm.</summary>
        public bool Verify(byte[] signed, byte[] signature)
        {
            if (verify == null) throw new PlatformNotSupportedException("this framework cannot verify " + Algorithm);
            return verify(signed, signature);
        }

        /// <summary>Returns null for kinds of keys that this version does not know.</summary>
        public static PublicKey Import(Json jwk)
        {
            var key = new PublicKey { Kid = jwk["kid"].Text };
            if (key.Kid == "") return null;
            try
            {
                switch (jwk["kty"].Text + " " + jwk["crv"].Text)
                {
                    case "RSA ": key.UseRsa(jwk); break;
                    case "EC P-256": key.UseEcdsa(jwk); break;
                    case "OKP Ed25519": key.Algorithm = "EdDSA"; break; // neither .NET nor Mono has it
                    default: return null;
                }
            }
            catch (Exception error) when (error is CryptographicException || error is PlayerRefused)
            {
                return null;
            }
            return key;
        }

        private void UseRsa(Json jwk)
        {
            Algorithm = "RS256";
            var parameters = new RSAParameters { Modulus = Jwt.Decode(jwk["n"].Text), Exponent = Jwt.Decode(jwk["e"].Text) };
            RSA rsa = RSA.Create();
            rsa.ImportParameters(parameters);
            verify = (signed, signature) =>
            {
                lock (rsa) return rsa.VerifyData(signed, signature, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);
            };
        }

        private void UseEcdsa(Json jwk)
        {
            Algorithm = "ES256";
            var point = new ECPoint { X = Jwt.Decode(jwk["x"].Text), Y = Jwt.Decode(jwk["y"].Text) };
            var parameters = new ECParameters { Curve = ECCurve.NamedCurves.nistP256, Q = point };
            try
            {
                ECDsa ecdsa = ECDsa.Create(parameters);
                verify = (signed, signature) =>
                {
                    lock (ecdsa) return ecdsa.VerifyData(signed, signature, HashAlgorithmName.SHA256);
                };
            }
            catch (Exception error) when (error is NotImplementedException || error is PlatformNotSupportedException)
            {
                // Mono has no ECDSA.
            }
        }
    }
}
