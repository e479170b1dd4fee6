// What Mono lacks of .NET 6, as far as GameLogin.cs uses it: so that the example can be run where there is only Mono.
// The key "PEM" is .NET's XML form here, which Mono can read.

using System;
using System.Collections.Generic;
using System.Security.Cryptography;
using System.Text;
using System.Web.Script.Serialization;

namespace System.Text.Json
{
    public struct JsonElement
    {
        private readonly object value;
        public JsonElement(object value) { this.value = value; }
        public bool TryGetProperty(string name, out JsonElement found)
        {
            object inner = null;
            bool there = ((IDictionary<string, object>)value).TryGetValue(name, out inner);
            found = new JsonElement(inner);
            return there;
        }
        public JsonElement GetProperty(string name) { return new JsonElement(((IDictionary<string, object>)value)[name]); }
        public int GetInt32() { return (int)value; }
        public override string ToString() { return Convert.ToString(value); }
    }

    public class JsonDocument
    {
        public JsonElement RootElement { get; private set; }
        public static JsonDocument Parse(byte[] raw)
        {
            string text = Encoding.UTF8.GetString(raw);
            return new JsonDocument { RootElement = new JsonElement(new JavaScriptSerializer().DeserializeObject(text)) };
        }
    }

    public static class JsonSerializer
    {
        public static byte[] SerializeToUtf8Bytes(object value)
        {
            return Encoding.UTF8.GetBytes(new JavaScriptSerializer().Serialize(value));
        }
    }
}

// Without a namespace it goes before the one of System.Security.Cryptography, which lacks the two forms of keys.
public class RSA
{
    private readonly RSACryptoServiceProvider key = new RSACryptoServiceProvider();

    public static RSA Create() { return new RSA(); }
    public void ImportFromPem(string text) { key.FromXmlString(text); }
    public byte[] SignData(byte[] data, HashAlgorithmName hash, RSASignaturePadding padding)
    {
        return key.SignData(data, hash, padding);
    }

    public byte[] ExportSubjectPublicKeyInfo() // PKCS#1, which the service takes as well
    {
        RSAParameters numbers = key.ExportParameters(false);
        var inner = new List<byte>(Der(2, numbers.Modulus));
        inner.AddRange(Der(2, numbers.Exponent));
        return Der(0x30, inner.ToArray());
    }

    private static byte[] Der(byte tag, byte[] content)
    {
        var body = new List<byte>(content);
        if (tag == 2 && body[0] > 127) body.Insert(0, 0);
        var all = new List<byte> { tag };
        if (body.Count < 128) all.Add((byte)body.Count);
        else all.AddRange(new byte[] { 0x82, (byte)(body.Count >> 8), (byte)body.Count });
        all.AddRange(body);
        return all.ToArray();
    }
}
