// A value, or why there is none.
#pragma once

#include <utility>
#include <variant>

namespace sso {

template <class T, class F>
class Outcome {
public:
    Outcome(T value) : content_(std::move(value)) {}
    Outcome(F failure) : content_(std::move(failure)) {}

    explicit operator bool() const { return std::holds_alternative<T>(content_); }
    const T& operator*() const { return *std::get_if<T>(&content_); }
    const T* operator->() const { return std::get_if<T>(&content_); }
    const F& failure() const { return *std::get_if<F>(&content_); }

private:
    std::variant<T, F> content_;
};

struct Done {};

}  // namespace sso
