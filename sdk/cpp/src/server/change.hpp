// Events of the change stream and of webhooks.
#pragma once

#include "json.hpp"
#include "sso/server.hpp"

namespace sso {

// An event about permissions has no type of its own.
inline Change change_of(const Json& event, const std::string& json) {
    const std::string& type = event["type"].text();
    return {event["id"].as_text(), type.empty() ? "permissions_changed" : type, event["user_id"].as_text(),
            event["application_id"].integer(), json};
}

}  // namespace sso
