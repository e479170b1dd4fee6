using System.Collections.Generic;
using NUnit.Framework;

namespace Sso
{
    internal sealed class Memory : IStore
    {
        public readonly Dictionary<string, string> Values = new Dictionary<string, string>();

        public string Get(string name) => Values.TryGetValue(name, out string value) ? value : null;

        public void Set(string name, string value)
        {
            if (value == null) Values.Remove(name);
            else Values[name] = value;
        }
    }

    /// <summary>What is stored, and the QR code: what can be tested without a service. The contract tests the rest.</summary>
    public sealed class StorageTests
    {
        [Test]
        public void StoredValueIsReadAgain()
        {
            var memory = new Memory();
            new EncryptedStore(memory, "a device").Set("token", "secret \u00fc");
            Assert.AreEqual("secret \u00fc", new EncryptedStore(memory, "a device").Get("token"));
            Assert.IsFalse(memory.Values["token"].Contains("secret"));
            new EncryptedStore(memory, "a device").Set("token", null);
            Assert.IsNull(new EncryptedStore(memory, "a device").Get("token"));
        }

        [Test]
        public void ValueOfAnotherDeviceOrNameCannotBeRead()
        {
            var memory = new Memory();
            new EncryptedStore(memory, "a device").Set("token", "secret");
            memory.Values["guest_key"] = memory.Values["token"];
            Assert.AreEqual("", new EncryptedStore(memory, "another device").Get("token"));
            Assert.AreEqual("", new EncryptedStore(memory, "a device").Get("guest_key"));
        }

        [Test]
        public void ChangedValueCannotBeRead()
        {
            var memory = new Memory();
            var store = new EncryptedStore(memory, "a device");
            store.Set("token", "secret");
            string stored = memory.Values["token"];
            foreach (string wrong in new[] { "", "secret", stored.Substring(4), stored.Substring(0, stored.Length - 4), "AAAA" + stored.Substring(4) })
            {
                memory.Values["token"] = wrong;
                Assert.AreEqual("", store.Get("token"));
            }
        }

        [Test]
        public void LinkBecomesAQrCode()
        {
            QrCode code = QrCode.Of("https://sso.example.com/?gsid=0c7c0f0e-4f0e-4f5c-9d1f-6f8f2b0f7a11");
            Assert.AreEqual(37, code.Size);
            Assert.IsTrue(code[0, 0]);
            Assert.IsFalse(code[7, 7]);
            Assert.IsNull(QrCode.Of(new string('a', 214)));
        }
    }
}
