using System;
using System.Collections.Generic;
using System.Security.Cryptography;
using System.Text;

namespace Sso
{
    /// <summary>An RSA key, for one session or for the guest of a device: all profiles of Unity can make one.</summary>
    internal sealed class SigningKey
    {
        private static readonly byte[] RsaIdentifier =
            { 0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00 };
        private readonly RSACryptoServiceProvider rsa;

        private SigningKey(RSACryptoServiceProvider rsa)
        {
            this.rsa = rsa;
        }

        public static SigningKey Create() => new SigningKey(new RSACryptoServiceProvider(2048));

        /// <summary>The private key as a text to store.</summary>
        public string Stored => Convert.ToBase64String(rsa.ExportCspBlob(true));

        /// <summary>Returns null if the text is no private key.</summary>
        public static SigningKey Read(string stored)
        {
            try
            {
                var rsa = new RSACryptoServiceProvider();
                rsa.ImportCspBlob(Convert.FromBase64String(stored));
                return rsa.PublicOnly ? null : new SigningKey(rsa);
            }
            catch (Exception) // platforms differ in what they throw
            {
                return null;
            }
        }

        /// <summary>Base64 of the DER of a SubjectPublicKeyInfo.</summary>
        public string PublicKey
        {
            get
            {
                RSAParameters parameters = rsa.ExportParameters(false);
                byte[] key = Der(0x30, Integer(parameters.Modulus), Integer(parameters.Exponent));
                return Convert.ToBase64String(Der(0x30, RsaIdentifier, Der(0x03, new byte[] { 0 }, key)));
            }
        }

        public string Sign(string text) =>
            Convert.ToBase64String(rsa.SignData(Encoding.UTF8.GetBytes(text), CryptoConfig.MapNameToOID("SHA256")));

        public static string NewNonce()
        {
            var data = new byte[24];
            using (RandomNumberGenerator random = RandomNumberGenerator.Create()) random.GetBytes(data);
            return Convert.ToBase64String(data).Replace('+', '-').Replace('/', '_');
        }

        private static byte[] Integer(byte[] number)
        {
            bool isSigned = number[0] >= 0x80; // a zero byte makes it positive
            return isSigned ? Der(0x02, new byte[] { 0 }, number) : Der(0x02, number);
        }

        private static byte[] Der(byte tag, params byte[][] parts)
        {
            var content = new List<byte>();
            foreach (byte[] part in parts) content.AddRange(part);
            var encoded = new List<byte> { tag };
            if (content.Count < 0x80) encoded.Add((byte)content.Count);
            else if (content.Count < 0x100) encoded.AddRange(new[] { (byte)0x81, (byte)content.Count });
            else encoded.AddRange(new[] { (byte)0x82, (byte)(content.Count >> 8), (byte)content.Count });
            encoded.AddRange(content);
            return encoded.ToArray();
        }
    }
}
