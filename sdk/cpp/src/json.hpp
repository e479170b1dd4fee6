// JSON, as much as the answers of the service need.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sso {

class Json {
public:
    enum class Kind { null, boolean, number, text, array, object };

    static std::optional<Json> parse(const std::string& text);

    Kind kind() const { return kind_; }
    bool is_object() const { return kind_ == Kind::object; }
    bool is_text() const { return kind_ == Kind::text; }
    bool is_true() const { return kind_ == Kind::boolean && boolean_; }
    const std::string& text() const { return text_; }  // empty for other kinds
    double number() const { return number_; }
    bool is_integer() const { return kind_ == Kind::number && number_ == static_cast<double>(integer()); }
    std::int64_t integer() const;  // 0 for other kinds, and for numbers that are too large
    const std::vector<Json>& items() const { return items_; }
    // The member of an object; null if there is none.
    const Json& operator[](const std::string& name) const;
    bool has(const std::string& name) const { return members_.count(name) != 0; }
    // A text or a number, as text.
    std::string as_text() const;
    std::string str() const;

private:
    friend class JsonReader;
    Kind kind_ = Kind::null;
    bool boolean_ = false;
    double number_ = 0;
    std::string text_;
    std::vector<Json> items_;
    std::map<std::string, Json> members_;
};

// Writes an object, member by member.
class JsonWriter {
public:
    JsonWriter& add(const std::string& name, const std::string& value);
    JsonWriter& add(const std::string& name, const char* value) { return add(name, std::string(value)); }
    JsonWriter& add(const std::string& name, std::int64_t value);
    JsonWriter& add_raw(const std::string& name, const std::string& json);
    std::string str() const { return "{" + body_ + "}"; }

private:
    std::string body_;
};

std::string quoted(const std::string& text);

}  // namespace sso
