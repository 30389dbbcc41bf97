// Package node adds a node on which pods really run to a local cluster: a kubelet, containerd, runc and CNI's bridge, with
// CoreDNS for the names of workers, and a device plugin for devices that are not there. Nothing is pulled: images are made
// here, of Debian's packages.
//
// All of it runs in namespaces of its own, which the kernel ends when the test does, however that ends: no process, mount,
// interface or route of it is seen outside. The kernel's settings, which have no namespace, are covered by files, so that the
// kubelet writes none of the machine's. What is left are cgroups without processes and a folder in the cache, which [Node.Stop]
// or the next start removes.
//
// The kubelet is 1.36.3 also where the API server is 1.37, which allows one that is up to three minor versions older: it has run
// with Debian 12's containerd 1.6, which has no RuntimeConfig, and the kubelet that comes after 1.37 needs that.
//
// It takes root, Debian 12, and the packages that [Missing] names.
package node
