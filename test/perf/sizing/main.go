// Sizing compares what containers should request by what they were seen using: by Tideline's rules, by the recommender of
// Vertical Pod Autoscaler and by the simple strategy of KRR. A thousand tasks are seen for a week, and what they need in the week
// after tells who was right.
package main

func main() {}
