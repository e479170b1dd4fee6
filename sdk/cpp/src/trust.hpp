// Which certificates of servers are trusted.
#pragma once

#include <curl/curl.h>

namespace sso {

void use_trusted_certificates(CURL* curl);

}  // namespace sso
