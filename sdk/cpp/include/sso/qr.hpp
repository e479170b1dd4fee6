// Draws a link as a QR code, for players on consoles and handhelds who sign in with a phone.
#pragma once

#include <string>
#include <vector>

namespace sso {

// The rows of a QR code; true is dark. Draw it dark on light, with a margin of four modules. Level M, versions 1 to 10. Empty
// if the text has more than 213 bytes.
std::vector<std::vector<bool>> qr_code(const std::string& text);

}  // namespace sso
