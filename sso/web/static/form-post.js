"use strict";
// Sends the answer of a sign-in to the site. Without JavaScript, the user presses the button.
document.getElementById("form-post").submit();
