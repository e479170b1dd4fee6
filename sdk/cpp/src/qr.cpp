#include "sso/qr.hpp"

#include <array>
#include <cstdlib>

namespace sso {

namespace {
using Bytes = std::vector<unsigned char>;

// The blocks of level M: checks of each block, number of blocks, data of the shorter ones, and how many have one byte more.
struct Version {
    int checks, blocks, data, longer;
    std::vector<int> marks;  // centres of the alignment marks
    int size() const { return blocks * data + longer; }
};

const std::vector<Version>& versions() {
    static const std::vector<Version> table = {
        {10, 1, 16, 0, {}},      {16, 1, 28, 0, {6, 18}}, {26, 1, 44, 0, {6, 22}},     {18, 2, 32, 0, {6, 26}},
        {24, 2, 43, 0, {6, 30}}, {16, 4, 27, 0, {6, 34}}, {18, 4, 31, 0, {6, 22, 38}}, {22, 4, 38, 2, {6, 24, 42}},
        {22, 5, 36, 2, {6, 26, 46}}, {26, 5, 43, 1, {6, 28, 50}},
    };
    return table;
}

unsigned char multiply(unsigned char a, unsigned char b) {  // in GF(256)
    int product = 0;
    for (int bit = 7; bit >= 0; --bit) {
        product = (product << 1) ^ ((product >> 7) * 0x11D);
        if (b >> bit & 1) product ^= a;
    }
    return static_cast<unsigned char>(product);
}

Bytes check_bytes(const Bytes& data, int count) {  // Reed-Solomon
    Bytes divisor(static_cast<std::size_t>(count));
    divisor.back() = 1;
    unsigned char root = 1;
    for (int factor = 0; factor < count; ++factor) {
        for (std::size_t at = 0; at < divisor.size(); ++at) {
            divisor[at] = multiply(divisor[at], root);
            if (at + 1 < divisor.size()) divisor[at] ^= divisor[at + 1];
        }
        root = multiply(root, 2);
    }
    Bytes rest(divisor.size());
    for (const unsigned char byte : data) {
        const unsigned char factor = byte ^ rest.front();
        rest.erase(rest.begin());
        rest.push_back(0);
        for (std::size_t at = 0; at < rest.size(); ++at) rest[at] ^= multiply(divisor[at], factor);
    }
    return rest;
}

Bytes data_bytes(const std::string& text, int number) {
    std::vector<bool> bits;
    const auto add = [&bits](unsigned value, int count) {
        for (int bit = count - 1; bit >= 0; --bit) bits.push_back(value >> bit & 1);
    };
    add(4, 4);  // bytes
    add(static_cast<unsigned>(text.size()), number < 10 ? 8 : 16);
    for (const char c : text) add(static_cast<unsigned char>(c), 8);
    const auto capacity = static_cast<std::size_t>(versions()[static_cast<std::size_t>(number - 1)].size()) * 8;
    add(0, static_cast<int>(std::min<std::size_t>(4, capacity - bits.size())));
    while (bits.size() % 8) bits.push_back(false);
    for (unsigned pad = 0xEC; bits.size() < capacity; pad ^= 0xEC ^ 0x11) add(pad, 8);
    Bytes data(bits.size() / 8);
    for (std::size_t at = 0; at < bits.size(); ++at) data[at / 8] |= static_cast<unsigned char>(bits[at] << (7 - at % 8));
    return data;
}

Bytes interleaved(const Bytes& data, const Version& version) {
    std::vector<Bytes> blocks, checks;
    auto next = data.begin();
    for (int block = 0; block < version.blocks; ++block) {
        const int size = version.data + (block >= version.blocks - version.longer);
        blocks.emplace_back(next, next + size);
        checks.push_back(check_bytes(blocks.back(), version.checks));
        next += size;
    }
    Bytes out;
    for (const auto* parts : {&blocks, &checks}) {
        for (std::size_t at = 0; at < parts->back().size(); ++at) {
            for (const Bytes& part : *parts) {
                if (at < part.size()) out.push_back(part[at]);
            }
        }
    }
    return out;
}

class Matrix {
public:
    Matrix(int number, const Version& version) : size_(17 + 4 * number) {
        const auto side = static_cast<std::size_t>(size_);
        dark_.assign(side, std::vector<bool>(side));
        taken_ = dark_;
        for (int at = 0; at < size_; ++at) {
            set(6, at, at % 2 == 0);
            set(at, 6, at % 2 == 0);
        }
        for (const auto& [row, column] : {std::pair(3, 3), std::pair(3, size_ - 4), std::pair(size_ - 4, 3)}) {
            draw_square(row, column, 4);
        }
        for (const int row : version.marks) {
            for (const int column : version.marks) {
                const int last = version.marks.back();
                const bool is_corner = (row == 6 && (column == 6 || column == last)) || (row == last && column == 6);
                if (!is_corner) draw_square(row, column, 2);
            }
        }
        draw_format(0);
        if (number >= 7) draw_version(number);
    }

    void draw(const Bytes& bytes) {
        std::size_t bit = 0;
        for (int right = size_ - 1; right >= 1; right -= 2) {
            if (right == 6) right = 5;  // the column of the timing pattern
            for (int step = 0; step < size_; ++step) {
                const bool is_upward = ((right + 1) & 2) == 0;
                const int row = is_upward ? size_ - 1 - step : step;
                for (const int column : {right, right - 1}) {
                    if (is_taken(row, column)) continue;
                    dark_[index(row)][index(column)] = bit < bytes.size() * 8 && bytes[bit / 8] >> (7 - bit % 8) & 1;
                    ++bit;
                }
            }
        }
    }

    void mask(int kind) {
        for (int row = 0; row < size_; ++row) {
            for (int column = 0; column < size_; ++column) {
                if (!is_taken(row, column) && is_masked(kind, row, column)) {
                    dark_[index(row)][index(column)] = !dark_[index(row)][index(column)];
                }
            }
        }
        draw_format(kind);
    }

    // How hard the code is to read: long lines, blocks, what looks like a corner mark, and more dark than light.
    int penalty() const {
        int sum = 0, dark = 0;
        for (int line = 0; line < size_; ++line) {
            sum += line_penalty([&](int at) { return is_dark(line, at); });
            sum += line_penalty([&](int at) { return is_dark(at, line); });
            for (int at = 0; at < size_; ++at) {
                dark += is_dark(line, at);
                const bool is_block = line + 1 < size_ && at + 1 < size_ && is_dark(line, at) == is_dark(line, at + 1) &&
                                      is_dark(line, at) == is_dark(line + 1, at) &&
                                      is_dark(line, at) == is_dark(line + 1, at + 1);
                sum += 3 * is_block;
            }
        }
        const int total = size_ * size_;
        return sum + 10 * (std::abs(dark * 20 - total * 10) / total);
    }

    const std::vector<std::vector<bool>>& rows() const { return dark_; }

private:
    static std::size_t index(int at) { return static_cast<std::size_t>(at); }
    bool is_dark(int row, int column) const { return dark_[index(row)][index(column)]; }
    bool is_taken(int row, int column) const { return taken_[index(row)][index(column)]; }

    void set(int row, int column, bool dark) {
        if (row < 0 || column < 0 || row >= size_ || column >= size_) return;
        dark_[index(row)][index(column)] = dark;
        taken_[index(row)][index(column)] = true;
    }

    // A corner mark (radius 4, with its light border) or an alignment mark (radius 2).
    void draw_square(int row, int column, int radius) {
        for (int down = -radius; down <= radius; ++down) {
            for (int right = -radius; right <= radius; ++right) {
                const int distance = std::max(std::abs(down), std::abs(right));
                set(row + down, column + right, radius == 4 ? distance != 2 && distance != 4 : distance != 1);
            }
        }
    }

    static int with_checks(int value, int generator, int degree) {
        int rest = value << degree;
        for (int bit = 20; bit >= degree; --bit) {
            if (rest >> bit & 1) rest ^= generator << (bit - degree);
        }
        return value << degree | rest;
    }

    void draw_format(int mask) {
        const int bits = with_checks(mask, 0x537, 10) ^ 0x5412;  // level M is 0
        for (int at = 0; at < 15; ++at) {
            const bool dark = bits >> at & 1;
            if (at < 6) set(at, 8, dark);
            else if (at < 8) set(at + 1, 8, dark);
            else set(8, at == 8 ? 7 : 14 - at, dark);
            if (at < 8) set(8, size_ - 1 - at, dark);
            else set(size_ - 15 + at, 8, dark);
        }
        set(size_ - 8, 8, true);
    }

    void draw_version(int number) {
        const int bits = with_checks(number, 0x1F25, 12);
        for (int at = 0; at < 18; ++at) {
            set(at / 3, size_ - 11 + at % 3, bits >> at & 1);
            set(size_ - 11 + at % 3, at / 3, bits >> at & 1);
        }
    }

    static bool is_masked(int kind, int row, int column) {
        switch (kind) {
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

    template <class At>
    int line_penalty(At is_dark_at) const {
        int sum = 0, run = 0;
        unsigned last = 0;  // the last eleven modules
        for (int at = 0; at < size_; ++at) {
            run = at && is_dark_at(at) == is_dark_at(at - 1) ? run + 1 : 1;
            sum += run == 5 ? 3 : run > 5;
            last = (last << 1 | is_dark_at(at)) & 0x7FF;
            if (at >= 10 && (last == 0x5D0 || last == 0x05D)) sum += 40;
        }
        return sum;
    }

    int size_;
    std::vector<std::vector<bool>> dark_, taken_;
};
}  // namespace

std::vector<std::vector<bool>> qr_code(const std::string& text) {
    int number = 1;
    for (const Version& version : versions()) {
        const std::size_t head = number < 10 ? 2 : 3;  // mode and length, rounded up
        if (text.size() + head <= static_cast<std::size_t>(version.size())) {
            Matrix plain(number, version);
            plain.draw(interleaved(data_bytes(text, number), version));
            Matrix best = plain;
            int least = -1;
            for (int kind = 0; kind < 8; ++kind) {
                Matrix masked = plain;
                masked.mask(kind);
                const int penalty = masked.penalty();
                if (least >= 0 && penalty >= least) continue;
                least = penalty;
                best = masked;
            }
            return best.rows();
        }
        ++number;
    }
    return {};
}

}  // namespace sso
