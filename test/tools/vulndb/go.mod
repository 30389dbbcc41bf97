// The Go vulnerability database as of a day, for make vuln where the live one cannot be reached. It is data: nothing is built.
// Renew it by: go -C test/tools/vulndb get golang.org/x/vulndb@latest
module github.com/tideline-io/tideline/test/tools/vulndb

go 1.26.0

require golang.org/x/vulndb v0.0.0-20261105234957-e22db6528018
