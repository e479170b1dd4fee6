using System;

namespace Sso
{
    /// <summary>The blocks of level M.</summary>
    internal sealed class QrVersion
    {
        public readonly int Checks; // of each block
        public readonly int Blocks;
        public readonly int Data; // of the shorter blocks
        public readonly int Longer; // blocks with one byte more
        public readonly int[] Marks; // centres of the alignment marks
        public int Size => Blocks * Data + Longer;

        private QrVersion(int checks, int blocks, int data, int longer, params int[] marks)
        {
            Checks = checks;
            Blocks = blocks;
            Data = data;
            Longer = longer;
            Marks = marks;
        }

        public static readonly QrVersion[] All =
        {
            new QrVersion(10, 1, 16, 0), new QrVersion(16, 1, 28, 0, 6, 18), new QrVersion(26, 1, 44, 0, 6, 22),
            new QrVersion(18, 2, 32, 0, 6, 26), new QrVersion(24, 2, 43, 0, 6, 30), new QrVersion(16, 4, 27, 0, 6, 34),
            new QrVersion(18, 4, 31, 0, 6, 22, 38), new QrVersion(22, 4, 38, 2, 6, 24, 42),
            new QrVersion(22, 5, 36, 2, 6, 26, 46), new QrVersion(26, 5, 43, 1, 6, 28, 50),
        };
    }

    internal sealed class QrMatrix
    {
        public readonly int Size;
        private readonly bool[,] dark;
        private readonly bool[,] taken;

        public QrMatrix(int number, QrVersion version, byte[] bytes, int mask)
        {
            Size = 17 + 4 * number;
            dark = new bool[Size, Size];
            taken = new bool[Size, Size];
            for (int at = 0; at < Size; at++)
            {
                Set(6, at, at % 2 == 0);
                Set(at, 6, at % 2 == 0);
            }
            DrawSquare(3, 3, 4);
            DrawSquare(3, Size - 4, 4);
            DrawSquare(Size - 4, 3, 4);
            foreach (int row in version.Marks)
            {
                foreach (int column in version.Marks)
                {
                    int last = version.Marks[version.Marks.Length - 1];
                    bool isCorner = (row == 6 && (column == 6 || column == last)) || (row == last && column == 6);
                    if (!isCorner) DrawSquare(row, column, 2);
                }
            }
            DrawFormat(mask);
            if (number >= 7) DrawVersion(number);
            Draw(bytes, mask);
        }

        public bool IsDark(int row, int column) => dark[row, column];

        /// <summary>How hard the code is to read: long lines, blocks, what looks like a corner mark, and more dark than
        /// light.</summary>
        public int Penalty()
        {
            int sum = 0, darks = 0;
            for (int line = 0; line < Size; line++)
            {
                int row = line;
                sum += LinePenalty(at => dark[row, at]) + LinePenalty(at => dark[at, row]);
                for (int at = 0; at < Size; at++)
                {
                    if (dark[line, at]) darks++;
                    bool isBlock = line + 1 < Size && at + 1 < Size && dark[line, at] == dark[line, at + 1]
                        && dark[line, at] == dark[line + 1, at] && dark[line, at] == dark[line + 1, at + 1];
                    if (isBlock) sum += 3;
                }
            }
            return sum + 10 * (Math.Abs(darks * 20 - Size * Size * 10) / (Size * Size));
        }

        private int LinePenalty(Func<int, bool> isDark)
        {
            int sum = 0, run = 0, last = 0; // the last eleven modules
            for (int at = 0; at < Size; at++)
            {
                run = at > 0 && isDark(at) == isDark(at - 1) ? run + 1 : 1;
                if (run == 5) sum += 3;
                else if (run > 5) sum++;
                last = (last << 1 | (isDark(at) ? 1 : 0)) & 0x7FF;
                if (at >= 10 && (last == 0x5D0 || last == 0x05D)) sum += 40;
            }
            return sum;
        }

        private void Draw(byte[] bytes, int mask)
        {
            int bit = 0;
            for (int right = Size - 1; right >= 1; right -= 2)
            {
                if (right == 6) right = 5; // the column of the timing pattern
                for (int step = 0; step < Size; step++)
                {
                    bool isUpward = ((right + 1) & 2) == 0;
                    int row = isUpward ? Size - 1 - step : step;
                    for (int column = right; column >= right - 1; column--)
                    {
                        if (taken[row, column]) continue;
                        bool isSet = bit < bytes.Length * 8 && (bytes[bit / 8] >> (7 - bit % 8) & 1) != 0;
                        dark[row, column] = isSet != IsMasked(mask, row, column);
                        bit++;
                    }
                }
            }
        }

        private void Set(int row, int column, bool isDark)
        {
            if (row < 0 || column < 0 || row >= Size || column >= Size) return;
            dark[row, column] = isDark;
            taken[row, column] = true;
        }

        /// <summary>A corner mark (radius 4, with its light border) or an alignment mark (radius 2).</summary>
        private void DrawSquare(int row, int column, int radius)
        {
            for (int down = -radius; down <= radius; down++)
            {
                for (int right = -radius; right <= radius; right++)
                {
                    int distance = Math.Max(Math.Abs(down), Math.Abs(right));
                    Set(row + down, column + right, radius == 4 ? distance != 2 && distance != 4 : distance != 1);
                }
            }
        }

        private static int WithChecks(int value, int generator, int degree)
        {
            int rest = value << degree;
            for (int bit = 20; bit >= degree; bit--)
            {
                if ((rest >> bit & 1) != 0) rest ^= generator << (bit - degree);
            }
            return value << degree | rest;
        }

        private void DrawFormat(int mask)
        {
            int bits = WithChecks(mask, 0x537, 10) ^ 0x5412; // level M is 0
            for (int at = 0; at < 15; at++)
            {
                bool isDark = (bits >> at & 1) != 0;
                if (at < 6) Set(at, 8, isDark);
                else if (at < 8) Set(at + 1, 8, isDark);
                else Set(8, at == 8 ? 7 : 14 - at, isDark);
                if (at < 8) Set(8, Size - 1 - at, isDark);
                else Set(Size - 15 + at, 8, isDark);
            }
            Set(Size - 8, 8, true);
        }

        private void DrawVersion(int number)
        {
            int bits = WithChecks(number, 0x1F25, 12);
            for (int at = 0; at < 18; at++)
            {
                Set(at / 3, Size - 11 + at % 3, (bits >> at & 1) != 0);
                Set(Size - 11 + at % 3, at / 3, (bits >> at & 1) != 0);
            }
        }

        private static bool IsMasked(int kind, int row, int column)
        {
            switch (kind)
            {
                case 0: return (row + column) % 2 == 0;
                case 1: return row % 2 == 0;
                case 2: return column % 3 == 0;
                case 3: return (row + column) % 3 == 0;
                case 4: return (row / 2 + column / 3) % 2 == 0;
                case 5: return row * column % 2 + row * column % 3 == 0;
                case 6: return (row * column % 2 + row * column % 3) % 2 == 0;
                default: return ((row + column) % 2 + row * column % 3) % 2 == 0;
            }
        }
    }
}
