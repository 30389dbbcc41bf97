package v1beta1

// MaxPages is how many pages a job may have.
const MaxPages = 4

// JobPage is a port of worker 0 that answers browsers, by HTTP.
//
// +kubebuilder:validation:XValidation:rule="has(self.port) != has(self.portName)",fieldPath=".port",messageExpression="'page ' + self.name + ' must have one of port, a number, and portName, the name of a port of a container: ' + (has(self.port) ? 'remove one of the two' : 'set one of the two')"
type JobPage struct {
	// Name of the page, the last part of its path: lower-case letters, digits and dashes, beginning with a letter, 32 at most.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// Port of worker 0 at which the page answers, from 1 to 65535. It is not the port of the rendezvous.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// PortName is, instead of port, the name of a port of one of the template's containers or init containers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	PortName string `json:"portName,omitempty"`
}

// PageStatus says where a page is reached.
type PageStatus struct {
	// Name of the page.
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// URL of the page.
	// +kubebuilder:validation:MaxLength=512
	URL string `json:"url"`
}
