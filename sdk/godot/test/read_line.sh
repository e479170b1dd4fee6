IFS= read -r line || exit 1
printf '%s' "$line"
