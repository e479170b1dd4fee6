using System;
using System.Linq;
using System.Security.Cryptography;
using System.Text;

namespace Sso
{
    /// <summary>Encrypts values before another store keeps them, so that a copied file alone is of no use.</summary>
    public sealed class EncryptedStore : IStore
    {
        private const int IvSize = 16;
        private const int TagSize = 32;
        private const string Unreadable = "";
        private readonly IStore inner;
        private readonly byte[] encryption;
        private readonly byte[] authentication;

        /// <param name="secret">Of the game's choice: the same at each start, and another one on each device. With another
        /// secret, nothing that is stored can be read.</param>
        public EncryptedStore(IStore inner, string secret)
        {
            if (string.IsNullOrEmpty(secret)) throw new ArgumentException("expected a secret", nameof(secret));
            this.inner = inner;
            encryption = Digest("sso store encryption " + secret);
            authentication = Digest("sso store authentication " + secret);
        }

        public string Get(string name)
        {
            string stored = inner.Get(name);
            return stored == null ? null : Decrypt(name, stored);
        }

        public void Set(string name, string value)
        {
            inner.Set(name, value == null ? null : Encrypt(name, value));
        }

        private string Encrypt(string name, string value)
        {
            using (Aes aes = Aes.Create())
            {
                aes.Key = encryption;
                aes.GenerateIV();
                using (ICryptoTransform transform = aes.CreateEncryptor())
                {
                    byte[] text = Encoding.UTF8.GetBytes(value);
                    byte[] content = aes.IV.Concat(transform.TransformFinalBlock(text, 0, text.Length)).ToArray();
                    return Convert.ToBase64String(content.Concat(Tag(name, content)).ToArray());
                }
            }
        }

        private string Decrypt(string name, string stored)
        {
            try
            {
                byte[] all = Convert.FromBase64String(stored);
                if (all.Length < IvSize + TagSize) return Unreadable;
                byte[] content = all.Take(all.Length - TagSize).ToArray();
                byte[] tag = Tag(name, content);
                if (tag.Where((part, at) => part != all[content.Length + at]).Any()) return Unreadable;
                using (Aes aes = Aes.Create())
                using (ICryptoTransform transform = aes.CreateDecryptor(encryption, content.Take(IvSize).ToArray()))
                {
                    byte[] text = transform.TransformFinalBlock(content, IvSize, content.Length - IvSize);
                    return Encoding.UTF8.GetString(text);
                }
            }
            catch (Exception error) when (error is FormatException || error is CryptographicException)
            {
                return Unreadable;
            }
        }

        /// <summary>The name is part of it, so that one value cannot take the place of another.</summary>
        private byte[] Tag(string name, byte[] content)
        {
            using (var hmac = new HMACSHA256(authentication))
            {
                return hmac.ComputeHash(Encoding.UTF8.GetBytes(name + "\0").Concat(content).ToArray());
            }
        }

        private static byte[] Digest(string text)
        {
            using (SHA256 hash = SHA256.Create()) return hash.ComputeHash(Encoding.UTF8.GetBytes(text));
        }
    }
}
