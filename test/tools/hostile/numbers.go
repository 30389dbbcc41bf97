package main

// Files whose specs are tried as a user of a namespace, and may do what such a user may. The number after a file is that with
// which the texts of some of its specs begin.
const (
	asUser   = "test/integration/hostile/ways_test.go"
	webhooks = "test/integration/webhook_hostile_test.go"
)

// impersonating are all files whose specs act as somebody else than an administrator.
var impersonating = []string{
	asUser, webhooks, "test/integration/profile/guard_test.go", "test/integration/stolen_test.go",
}

// numbered are the ways in which one user can hurt others that a review of Tideline found, by its numbers, and what shows
// what becomes of each. docs/security.md has what is general of them.
var numbered = []way{
	{number: "T1", tries: "have others leave for a gang that cannot use the room",
		scenarios: []string{"test/integration/claims_test.go", asUser + "#T1"},
		tests:     []string{"TestWhoClaimsRoom", "TestWhyAClaimIsNone", "TestStoppedJobGoesOnOnceTheClaimForItHasEnded"}},
	{number: "T2", tries: "end a training by kubelets that reject its pods", scenarios: []string{"test/integration/nodes_test.go"},
		tests: []string{"TestANodeThatRejectsAgainAndAgainDoesNotEndTheTraining", "TestWorkersKeepOffNodesThatRejectedThem"}},
	{number: "T3", tries: "end a training by a node that loses power", tests: []string{
		"TestANodeThatDoesNotAnswerIsNamedAndItsTimeDoesNotCount", "TestPodsOfUnreachableNodesAreDeletedByForceWhenTheUserWantsThat"}},
	{number: "T4", tries: "have more leave for a gang of two shapes than it needs", scenarios: []string{asUser + "#T4"},
		tests: []string{"TestGangsOfTwoShapesAreSummed"}},
	{number: "T5", tries: "fall out of the model by ports, affinity or claims",
		scenarios: []string{"test/integration/capacity/differential_test.go", asUser + "#T5"},
		tests:     []string{"TestRulesAboutOtherPods", "TestWhatIsBeyondTheRules", "TestJobsOnTheHostsNetworkHavePortsOfTheirOwn"}},
	{number: "T6", tries: "go before who ranks higher while room is short",
		scenarios: []string{"test/integration/order/order_test.go", asUser + "#T6"},
		tests:     []string{"TestOrderIsByTierStandingAndAge"}},
	{number: "T7", tries: "end the operator by one review", refused: true,
		scenarios: []string{webhooks + "#T7"}, tests: []string{
			"TestReviewsTakeNoMemory", "TestParallelReviewsTakeNoMemory", "TestCallersNeedACertificate"}},
	{number: "T8", tries: "stop others' merges by forged pods and PodGroups", scenarios: []string{asUser + "#T8"}, tests: []string{
		"TestForgedPodsHoldNoMergeBack", "TestForgedPodGroupsStopNoPool", "TestPodGroupOfAStrangerIsNoMergesGang"}},
	{number: "T9", tries: "hold the line of merges by a gang that is never placed",
		scenarios: []string{"test/integration/merge/behaviours_test.go", asUser + "#T9"},
		tests:     []string{"TestHeadThatIsNotPlacedIsSetAside", "TestMergesThatAreNeverPlacedCostTheOthersMinutes"}},
	{number: "T10", tries: "keep room by a year of grace", refused: true,
		scenarios: []string{webhooks + "#T10", asUser + "#T10"}, tests: []string{"TestConfigurationBoundsGrace",
			"TestPodsOfLongGraceAreNotWaitedFor", "TestAYearOfGraceIsNotWaitedForAYear", "TestWhoeverIsDeletedIsGoneInTwoMinutes"}},
	{number: "T11", tries: "walk around caps and budgets", refused: true,
		scenarios: []string{"test/integration/profile/caps_test.go", "test/integration/profile/guard_test.go"},
		tests: []string{"TestCapsOfModelsHoldForNodesThatAreNamed", "TestMergesKeepCapsAndBudgets",
			"TestMergesKeepTheCapsOfTheirProfile"}},
	{number: "T12", tries: "fill the operator's memory",
		scenarios: []string{webhooks + "#T12", asUser + "#T12"}, tests: []string{"TestWhatOthersWriteTakesNoMemory",
			"TestTemplatesThatAreTooLargeAreNotKept", "TestPodsWithoutEndTakeNoMemory", "TestPodGroupsWithoutEndTakeNoMemory",
			"TestLabelsAndOwnersWithoutEndTakeNoMemory"}},
	{number: "T13", tries: "burn the operator's CPU by a template", refused: true,
		scenarios: []string{"test/integration/schema_test.go", webhooks + "#T13"},
		tests: []string{"TestBoundsOfTemplatesAreOnThePage", "TestTemplatesWithoutEndAreRefused",
			"TestOneNamespaceHasFewSetsOfRulesJudged"}},
	{number: "T14", tries: "keep surplus from gangs that wait", refused: true,
		scenarios: []string{webhooks + "#T14"},
		tests:     []string{"TestTierBoundsHowLongSurplusIsLeftAlone"}},
	{number: "T15", tries: "have a budget begin anew with the ledger", scenarios: []string{asUser + "#T15"},
		tests: []string{"TestUseThatIsBeingReadIsNotUnknown", "TestWhetherTheLedgerOutlivesThePod",
			"TestVolatileLedgerIsOnProfilesWithBudgets", "TestWhatIsBeforeTheLedgerIsUnknown", "TestManyOperatorsOnOneLedger",
			"TestFullDisk", "TestServersFailOver"}},
	{number: "T16", tries: "take a reservation by its name",
		scenarios: []string{"test/integration/profile/reservations_test.go", asUser + "#T16"},
		tests:     []string{"TestWhoTakesTheRoom", "TestOnlyTheOwnerOfAReservationPassesTheOrder"}},
	{number: "T17", tries: "use the operator's rights by its token", refused: true,
		scenarios: []string{"test/integration/stolen_test.go"}},
	{number: "T18", tries: "forge what a task used", tests: []string{
		"TestFiguresOfOtherTargetsDoNotCount", "TestQueriesAreToTrustedTargets"}},
	{number: "low", tries: "have a bucket of the same name in another of AWS's partitions taken for one's own",
		tests: []string{"TestBucketsOfOneNameInTwoWorldsOfAWSAreTwoPlaces", "TestModelHashTellsModelsInStoresApart"}},
	{number: "low", tries: "have webhooks of an operator that is down hold up deletions",
		scenarios: []string{"test/integration/webhook_test.go"}},
	{number: "low", tries: "have whoever reads reports migrate the ledger, and wait for its writer",
		tests: []string{"TestReadersWaitForNoWriter", "TestReadersMigrateNothing", "TestServingMakesNoLedger"}},
	{number: "low", tries: "write a formula into a report, by full-width signs too",
		tests: []string{"TestBehaviour3NamesMakeNoFormulas"}},
	{number: "low", tries: "have all readers of stores wait for the own ones",
		tests: []string{"TestOneNamespaceDoesNotHoldUpOthers"}},
	{number: "tests", tries: "have a weather of the fault grid pass that hits nothing",
		scenarios: []string{"test/faults/missed_test.go"}},
	{number: "tests", tries: "wait for gangs that are never placed", scenarios: []string{"test/integration/claims_test.go"},
		tests: []string{"TestStoppedJobGoesOnOnceTheClaimForItHasEnded", "TestMergesThatAreNeverPlacedCostTheOthersMinutes",
			"TestNobodyStopsForAGangThatWasNotPlacedInTime"}},
	{number: "tests", tries: "keep room by long graces", tests: []string{
		"TestPodsOfLongGraceAreNotWaitedFor", "TestAYearOfGraceIsNotWaitedForAYear", "TestWhoeverIsDeletedIsGoneInTwoMinutes"}},
	{number: "tests", tries: "forge labels and owner references across namespaces", tests: []string{
		"TestPodsForgedInOtherNamespacesClaimNothing", "TestPodGroupOfAStrangerIsNoMergesGang", "TestForgedPodsHoldNoMergeBack",
		"TestForgedPodGroupsStopNoPool", "TestStayOfAPodOfSomebodyElse"}},
	{number: "tests", tries: "fill the memory of webhooks and caches", tests: []string{"TestReviewsTakeNoMemory",
		"TestParallelReviewsTakeNoMemory", "TestWhatOthersWriteTakesNoMemory", "TestPodsWithoutEndTakeNoMemory",
		"TestPodGroupsWithoutEndTakeNoMemory", "TestTemplatesThatAreTooLargeAreNotKept", "TestLabelsAndOwnersWithoutEndTakeNoMemory"}},
	{number: "tests", tries: "take the arbiter's time by hostile templates", tests: []string{
		"TestHostileTemplatesCostTheArbiterLittle", "TestOneNamespaceHasFewSetsOfRulesJudged", "TestKindsOfPodsAreBounded"}},
	{number: "tests", tries: "lose hours by a disk that is full",
		tests: []string{"TestFullDisk", "TestNoRoom", "TestFullDiskCostsNoHours"}},
	{number: "tests", tries: "lose hours by a PostgreSQL that fails over", tests: []string{"TestServersFailOver"}},
}
