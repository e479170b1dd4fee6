using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;

namespace Sso
{
    /// <summary>A link as a QR code, for players on consoles and handhelds who sign in with a phone. Draw it dark on light,
    /// with a margin of four modules. Level M, versions 1 to 10.</summary>
    public sealed class QrCode
    {
        private readonly QrMatrix matrix;

        private QrCode(QrMatrix matrix)
        {
            this.matrix = matrix;
        }

        public int Size => matrix.Size;
        /// <summary>True is dark.</summary>
        public bool this[int x, int y] => matrix.IsDark(y, x);

        /// <summary>Returns null if the text has more than 213 bytes.</summary>
        public static QrCode Of(string text)
        {
            byte[] content = Encoding.UTF8.GetBytes(text);
            for (int number = 1; number <= QrVersion.All.Length; number++)
            {
                QrVersion version = QrVersion.All[number - 1];
                int head = number < 10 ? 2 : 3; // mode and length, rounded up
                if (content.Length + head > version.Size) continue;
                byte[] bytes = Interleaved(DataBytes(content, number, version), version);
                return new QrCode(Enumerable.Range(0, 8).Select(mask => new QrMatrix(number, version, bytes, mask))
                    .OrderBy(matrix => matrix.Penalty()).First());
            }
            return null;
        }

        private static byte[] DataBytes(byte[] content, int number, QrVersion version)
        {
            var bits = new List<bool>();
            Action<int, int> add = (value, count) =>
            {
                for (int bit = count - 1; bit >= 0; bit--) bits.Add((value >> bit & 1) != 0);
            };
            add(4, 4); // bytes
            add(content.Length, number < 10 ? 8 : 16);
            foreach (byte part in content) add(part, 8);
            add(0, Math.Min(4, version.Size * 8 - bits.Count));
            while (bits.Count % 8 != 0) bits.Add(false);
            for (int pad = 0xEC; bits.Count < version.Size * 8; pad ^= 0xEC ^ 0x11) add(pad, 8);
            var data = new byte[bits.Count / 8];
            for (int at = 0; at < bits.Count; at++) if (bits[at]) data[at / 8] |= (byte)(0x80 >> at % 8);
            return data;
        }

        private static byte[] Interleaved(byte[] data, QrVersion version)
        {
            var blocks = new List<byte[]>();
            int next = 0;
            for (int block = 0; block < version.Blocks; block++)
            {
                int size = version.Data + (block >= version.Blocks - version.Longer ? 1 : 0);
                blocks.Add(data.Skip(next).Take(size).ToArray());
                next += size;
            }
            var bytes = new List<byte>();
            foreach (List<byte[]> parts in new[] { blocks, blocks.Select(block => CheckBytes(block, version.Checks)).ToList() })
            {
                for (int at = 0; at < parts.Last().Length; at++) bytes.AddRange(parts.Where(part => at < part.Length).Select(part => part[at]));
            }
            return bytes.ToArray();
        }

        /// <summary>Reed-Solomon.</summary>
        private static byte[] CheckBytes(byte[] data, int count)
        {
            var divisor = new byte[count];
            divisor[count - 1] = 1;
            byte root = 1;
            for (int factor = 0; factor < count; factor++)
            {
                for (int at = 0; at < count; at++)
                {
                    divisor[at] = Multiply(divisor[at], root);
                    if (at + 1 < count) divisor[at] ^= divisor[at + 1];
                }
                root = Multiply(root, 2);
            }
            var rest = new byte[count];
            foreach (byte part in data)
            {
                byte factor = (byte)(part ^ rest[0]);
                Array.Copy(rest, 1, rest, 0, count - 1);
                rest[count - 1] = 0;
                for (int at = 0; at < count; at++) rest[at] ^= Multiply(divisor[at], factor);
            }
            return rest;
        }

        /// <summary>In GF(256).</summary>
        private static byte Multiply(byte a, byte b)
        {
            int product = 0;
            for (int bit = 7; bit >= 0; bit--)
            {
                product = (product << 1) ^ ((product >> 7) * 0x11D);
                if ((b >> bit & 1) != 0) product ^= a;
            }
            return (byte)product;
        }
    }
}
