package main

// numbered are the ways in which one user can hurt others that a review of Tideline found, by its numbers, and what shows
// what becomes of each. docs/security.md has what is general of them.
var numbered = []way{
	{number: "T1", tries: "have others leave for a gang that cannot use the room",
		scenarios: []string{"test/integration/claims_test.go"},
		tests:     []string{"TestWhoClaimsRoom", "TestWhyAClaimIsNone", "TestStoppedJobGoesOnOnceTheClaimForItHasEnded"}},
	{number: "T2", tries: "end a training by kubelets that reject its pods", scenarios: []string{"test/integration/nodes_test.go"},
		tests: []string{"TestANodeThatRejectsAgainAndAgainDoesNotEndTheTraining", "TestWorkersKeepOffNodesThatRejectedThem"}},
	{number: "T3", tries: "end a training by a node that loses power", tests: []string{
		"TestANodeThatDoesNotAnswerIsNamedAndItsTimeDoesNotCount", "TestPodsOfUnreachableNodesAreDeletedByForceWhenTheUserWantsThat"}},
	{number: "T4", tries: "have more leave for a gang of two shapes than it needs",
		tests: []string{"TestGangsOfTwoShapesAreSummed"}},
	{number: "T5", tries: "fall out of the model by ports, affinity or claims",
		scenarios: []string{"test/integration/capacity/differential_test.go"},
		tests:     []string{"TestRulesAboutOtherPods", "TestWhatIsBeyondTheRules", "TestJobsOnTheHostsNetworkHavePortsOfTheirOwn"}},
	{number: "T6", tries: "go before who ranks higher while room is short",
		scenarios: []string{"test/integration/order/order_test.go"},
		tests:     []string{"TestOrderIsByTierStandingAndAge"}},
	{number: "T7", tries: "end the operator by one review", refused: true, tests: []string{
		"TestReviewsTakeNoMemory", "TestParallelReviewsTakeNoMemory", "TestCallersNeedACertificate"}},
	{number: "T8", tries: "stop others' merges by forged pods and PodGroups", tests: []string{
		"TestForgedPodsHoldNoMergeBack", "TestForgedPodGroupsStopNoPool", "TestPodGroupOfAStrangerIsNoMergesGang"}},
	{number: "T9", tries: "hold the line of merges by a gang that is never placed",
		scenarios: []string{"test/integration/merge/behaviours_test.go"},
		tests:     []string{"TestHeadThatIsNotPlacedIsSetAside", "TestMergesThatAreNeverPlacedCostTheOthersMinutes"}},
	{number: "T10", tries: "keep room by a year of grace", refused: true, tests: []string{"TestConfigurationBoundsGrace",
		"TestPodsOfLongGraceAreNotWaitedFor", "TestAYearOfGraceIsNotWaitedForAYear", "TestWhoeverIsDeletedIsGoneInTwoMinutes"}},
	{number: "T11", tries: "walk around caps and budgets", refused: true,
		scenarios: []string{"test/integration/profile/caps_test.go"},
		tests: []string{"TestCapsOfModelsHoldForNodesThatAreNamed", "TestMergesKeepCapsAndBudgets",
			"TestMergesKeepTheCapsOfTheirProfile"}},
	{number: "T12", tries: "fill the operator's memory", tests: []string{"TestWhatOthersWriteTakesNoMemory",
		"TestTemplatesThatAreTooLargeAreNotKept", "TestPodsWithoutEndTakeNoMemory", "TestPodGroupsWithoutEndTakeNoMemory",
		"TestLabelsAndOwnersWithoutEndTakeNoMemory"}},
	{number: "T13", tries: "burn the operator's CPU by a template", refused: true,
		scenarios: []string{"test/integration/schema_test.go"},
		tests: []string{"TestBoundsOfTemplatesAreOnThePage", "TestTemplatesWithoutEndAreRefused",
			"TestOneNamespaceHasFewSetsOfRulesJudged"}},
	{number: "T14", tries: "keep surplus from gangs that wait", refused: true,
		tests: []string{"TestTierBoundsHowLongSurplusIsLeftAlone"}},
	{number: "T15", tries: "have a budget begin anew with the ledger", tests: []string{"TestWhetherTheLedgerOutlivesThePod",
		"TestVolatileLedgerIsOnProfilesWithBudgets", "TestWhatIsBeforeTheLedgerIsUnknown", "TestManyOperatorsOnOneLedger",
		"TestFullDisk", "TestServersFailOver"}},
	{number: "T16", tries: "take a reservation by its name", scenarios: []string{"test/integration/profile/reservations_test.go"},
		tests: []string{"TestWhoTakesTheRoom", "TestOnlyTheOwnerOfAReservationPassesTheOrder"}},
	{number: "T17", tries: "use the operator's rights by its token", refused: true,
		scenarios: []string{"test/integration/stolen_test.go"}},
	{number: "T18", tries: "forge what a task used", tests: []string{
		"TestFiguresOfOtherTargetsDoNotCount", "TestQueriesAreToTrustedTargets"}},
	{number: "low", tries: "write a formula into a report, by full-width signs too",
		tests: []string{"TestBehaviour3NamesMakeNoFormulas"}},
}
