// Package testutil is what the suites on a real cluster share: builders that read like sentences, the operator as a real
// process, what the API server's audit log says about it, and scenarios, each with a namespace and nodes of its own.
package testutil
