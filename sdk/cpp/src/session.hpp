// A session of the sign-in: a link for the browser, two words, and one open request for the result.
#pragma once

#include <string>

#include "http.hpp"
#include "keys.hpp"

namespace sso {

class Session {
public:
    static Result<Session> open(const std::string& base_url, JsonWriter fields, const Headers& headers, bool sign,
                                const std::atomic<bool>& cancelled);

    std::string link() const { return base_url_ + "/?gsid=" + gsid_; }
    const std::string& words() const { return words_; }
    std::string socket_url() const;

    // Polls until the player has signed in. Returns the answer with the login.
    Result<Json> result(const std::atomic<bool>& cancelled) const;
    // Tells the service how the sign-in ended. "Error" makes the link unusable. Nothing depends on the answer.
    void close(const char* status) const;

private:
    Exchange send(const char* name, JsonWriter fields, long timeout_s, const std::atomic<bool>* cancelled) const;

    std::string base_url_, gsid_, words_;
    std::string proof_;  // proves that a request comes from this game, as the query of an address
    std::optional<Key> key_;
};

}  // namespace sso
