// Which servers are trusted.
#pragma once

#include <string>

namespace sso {

// Trusts the certificate authorities in this PEM file, and no others. Call it before anything else. It is for programs whose
// libcurl does not find those of the system.
void trust(const std::string& ca_file);

}  // namespace sso
