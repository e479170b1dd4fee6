#include "json.hpp"

#include <cstdio>
#include <locale>
#include <sstream>
#include <string_view>

namespace sso {

namespace {
constexpr int max_depth = 32;
const Json null_json;

void append_utf8(std::string& out, unsigned code) {
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xC0 | (code >> 6));
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        out += static_cast<char>(0xE0 | (code >> 12));
        out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
        out += static_cast<char>(0xF0 | (code >> 18));
        out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
        out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    }
}

// Streams with the classic locale, since the decimal point of strtod and printf is that of the program's locale.
bool to_number(const std::string& digits, double& number) {
    std::istringstream in(digits);
    in.imbue(std::locale::classic());
    return in >> number && in.peek() == std::istringstream::traits_type::eof();
}

std::string to_digits(double number) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out.precision(17);
    out << number;
    return out.str();
}
}  // namespace

class JsonReader {
public:
    explicit JsonReader(const std::string& text) : at_(text.c_str()), end_(at_ + text.size()) {}

    bool read_document(Json& value) {
        if (!read(value, 0)) return false;
        skip();
        return at_ == end_;
    }

private:
    void skip() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    }

    bool take(char expected) {
        skip();
        if (at_ == end_ || *at_ != expected) return false;
        ++at_;
        return true;
    }

    bool take_word(const char* word) {
        const char* next = at_;
        for (; *word; ++word, ++next) {
            if (next == end_ || *next != *word) return false;
        }
        at_ = next;
        return true;
    }

    bool read(Json& value, int depth) {
        skip();
        if (at_ == end_ || depth > max_depth) return false;
        switch (*at_) {
            case '{': return read_object(value, depth);
            case '[': return read_array(value, depth);
            case '"': value.kind_ = Json::Kind::text; return read_text(value.text_);
            case 't': value.kind_ = Json::Kind::boolean; value.boolean_ = true; return take_word("true");
            case 'f': value.kind_ = Json::Kind::boolean; return take_word("false");
            case 'n': return take_word("null");
            default: return read_number(value);
        }
    }

    bool read_object(Json& value, int depth) {
        value.kind_ = Json::Kind::object;
        ++at_;
        if (take('}')) return true;
        do {
            std::string name;
            skip();
            if (at_ == end_ || *at_ != '"' || !read_text(name) || !take(':')) return false;
            if (value.has(name) || !read(value.members_[name], depth + 1)) return false;  // twice is ambiguous
        } while (take(','));
        return take('}');
    }

    bool read_array(Json& value, int depth) {
        value.kind_ = Json::Kind::array;
        ++at_;
        if (take(']')) return true;
        do {
            value.items_.emplace_back();
            if (!read(value.items_.back(), depth + 1)) return false;
        } while (take(','));
        return take(']');
    }

    bool read_number(Json& value) {
        const char* begin = at_;
        while (at_ != end_ && std::string_view("+-.0123456789eE").find(*at_) != std::string_view::npos) ++at_;
        value.kind_ = Json::Kind::number;
        return to_number(std::string(begin, at_), value.number_);
    }

    bool read_hex(unsigned& code) {
        code = 0;
        for (int digit = 0; digit < 4; ++digit, ++at_) {
            if (at_ == end_) return false;
            const char c = *at_;
            if (c >= '0' && c <= '9') code = code * 16 + static_cast<unsigned>(c - '0');
            else if (c >= 'a' && c <= 'f') code = code * 16 + static_cast<unsigned>(c - 'a' + 10);
            else if (c >= 'A' && c <= 'F') code = code * 16 + static_cast<unsigned>(c - 'A' + 10);
            else return false;
        }
        return true;
    }

    bool read_text(std::string& out) {
        for (++at_; at_ != end_ && *at_ != '"';) {
            if (*at_ != '\\') {
                out += *at_++;
                continue;
            }
            if (++at_ == end_) return false;
            const char escape = *at_++;
            switch (escape) {
                case 'b': out += '\b'; break;
                case 'f': out += '\f'; break;
                case 'n': out += '\n'; break;
                case 'r': out += '\r'; break;
                case 't': out += '\t'; break;
                case 'u': {
                    unsigned code = 0, low = 0;
                    if (!read_hex(code)) return false;
                    if (code >= 0xD800 && code < 0xDC00 && take_word("\\u") && read_hex(low)) {
                        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                    }
                    append_utf8(out, code);
                    break;
                }
                default: out += escape;
            }
        }
        return at_ != end_ && *at_++ == '"';
    }

    const char* at_;
    const char* end_;
};

std::optional<Json> Json::parse(const std::string& text) {
    Json value;
    if (!JsonReader(text).read_document(value)) return std::nullopt;
    return value;
}

const Json& Json::operator[](const std::string& name) const {
    const auto found = members_.find(name);
    return found == members_.end() ? null_json : found->second;
}

std::int64_t Json::integer() const {
    return number_ > -9e15 && number_ < 9e15 ? static_cast<std::int64_t>(number_) : 0;
}

std::string Json::as_text() const { return kind_ == Kind::number ? std::to_string(integer()) : text_; }

std::string Json::str() const {
    std::string out;
    switch (kind_) {
        case Kind::null: return "null";
        case Kind::boolean: return boolean_ ? "true" : "false";
        case Kind::text: return quoted(text_);
        case Kind::number: return to_digits(number_);
        case Kind::array:
            for (const Json& item : items_) out += (out.empty() ? "" : ", ") + item.str();
            return "[" + out + "]";
        case Kind::object:
            for (const auto& [name, value] : members_) out += (out.empty() ? "" : ", ") + quoted(name) + ": " + value.str();
            return "{" + out + "}";
    }
    return out;
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escape[7];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            out += escape;
        } else {
            out += c;
        }
    }
    return out + "\"";
}

JsonWriter& JsonWriter::add_raw(const std::string& name, const std::string& json) {
    body_ += (body_.empty() ? "" : ", ") + quoted(name) + ": " + json;
    return *this;
}

JsonWriter& JsonWriter::add(const std::string& name, const std::string& value) { return add_raw(name, quoted(value)); }

JsonWriter& JsonWriter::add(const std::string& name, std::int64_t value) { return add_raw(name, std::to_string(value)); }

}  // namespace sso
