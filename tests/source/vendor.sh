# The libraries in the report's page are those of npm: each file is the one of the package that queries/report/package-lock.json names,
# whose archive npm checks against the hash there. Wants the npm registry for that.
source tests/common.bash
folder=queries/report
ls "$folder/vendor" >"$tmp/vendored"
# The last version 3 format has a path for each package.
python3 - "$folder/package-lock.json" >"$tmp/locked" <<'END'
import json, sys
for path, package in sorted(json.load(open(sys.argv[1]))["packages"].items()):
    if path:
        assert package["integrity"].startswith("sha512-"), path
        print(path.removeprefix("node_modules/"))
END
check "each vendored package is pinned: $(comm -23 "$tmp/vendored" <(sort "$tmp/locked") | head -n 3)" test -z "$(comm -23 "$tmp/vendored" <(sort "$tmp/locked"))"
while read -r name; do
	check "$name has its licence" test -s "$folder/vendor/$name/LICENSE"
	for file in "$folder/vendor/$name"/*.js "$folder/vendor/$name"/*.css; do
		[ ! -e "$file" ] || check "the page embeds $file" grep -q "\"$name/${file##*/}\"" queries/html.c
	done
done <"$tmp/vendored"
mkdir "$tmp/npm" && cp $folder/package*.json "$tmp/npm"
if command -v npm >/dev/null && timeout 100 npm ci --prefix "$tmp/npm" --ignore-scripts --no-audit --no-fund >"$tmp/out" 2>&1; then
	while read -r file; do
		name=${file#"$folder/vendor/"}
		original=$(find "$tmp/npm/node_modules/${name%%/*}" -name "${name##*/}" -not -path '*/node_modules/*/node_modules/*' | head -n 1)
		check "$name is npm's" cmp -s "$file" "${original:-/dev/null}"
	done < <(find $folder/vendor -type f)
else
	skip 1 "no npm, or nothing to be had from its registry"
fi
