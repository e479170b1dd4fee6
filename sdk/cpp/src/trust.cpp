#include "trust.hpp"

#include <string>

#include "sso/trust.hpp"

namespace sso {

namespace {
std::string& ca_file() {
    static std::string path;
    return path;
}
}  // namespace

void trust(const std::string& file) { ca_file() = file; }

void use_trusted_certificates(CURL* curl) {
    if (!ca_file().empty()) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file().c_str());
        return;
    }
#if defined(_WIN32) && defined(CURLSSLOPT_NATIVE_CA)
    curl_easy_setopt(curl, CURLOPT_SSL_OPTIONS, static_cast<long>(CURLSSLOPT_NATIVE_CA));
#endif
}

}  // namespace sso
