package v1beta1

// DefaultPort is the effective default of framework.port. The schema states none, so that a port that a user chose can be told
// from the default, which differs for jobs on the host's network.
const DefaultPort int32 = 29400

// Defaults of the fields that an object may lack when it was admitted by a definition without them. They are those of the
// schema, which a test compares.
const (
	DefaultCooldownSeconds        int32 = 300
	DefaultGrowthsPerHour         int32 = 12
	DefaultOutageSeconds          int32 = 360
	DefaultOutageSecondsWithGrace int32 = 60
	DefaultLeastGainPercent       int32 = 10
	DefaultCompletionGraceSeconds int32 = 300
	DefaultJoinTimeoutSeconds     int32 = 600
	DefaultLastCallTimeoutSeconds int32 = 30
	DefaultReadTimeoutSeconds     int32 = 300
	DefaultBelowMinSeconds        int32 = 1800
	DefaultMaxRestarts            int32 = 10
	DefaultRestartWindowSeconds   int32 = 86400

	DefaultMergeThreshold      int32 = 100
	DefaultRunTimeoutSeconds   int32 = 7200
	DefaultStartTimeoutSeconds int32 = 300
	DefaultBackoffSeconds      int32 = 60
	DefaultIncrementsPerRun    int32 = 5000
)

// DefaultClaimPath is where containers of a merge have the volume of its store.
const DefaultClaimPath = "/models"

// MaxWorkers bounds minReplicas and maxReplicas.
const MaxWorkers = 4096

// NoTarget is the default of spec.replicas, which sets no number of workers to aim at.
const NoTarget int32 = 1
