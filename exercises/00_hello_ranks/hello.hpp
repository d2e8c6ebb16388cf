#pragma once
// Shows the two moves of everything that follows: cut the work so that each rank has its share, and put the
// shares together with one collective. Left out: models, gradients, time. Those come with the next lessons.
#include <algorithm>

#include "comm/comm.hpp"

namespace shardlings {

/// Elements [begin, end) of a vector: the part that one rank owns.
struct Slice {
  i64 begin = 0;
  i64 end = 0;
  i64 size() const { return end - begin; }
};

/// The part of n elements that rank `rank` of `size` ranks owns.
///
/// In:  n >= 0 elements, 0 <= rank < size.
/// Out: the slices of ranks 0, 1, … lie one after the other, each element belongs to exactly one rank, and
///      no rank has more than one element more than another, also when n does not divide by size.
/// A model can have more than 2^31 elements: count in i64.
inline Slice my_slice(i64 n, int rank, int size) {
  // YOUR CODE BEGIN my_slice
  (void)n, (void)rank, (void)size;
  LAB_TODO("say which elements [begin, end) this rank owns");
  // YOUR CODE END
}

/// The sum of the squares of a vector of which each rank holds only its slice. Every rank gets the same,
/// whole sum. (This is how a sharded optimizer finds the norm of a gradient that no rank has seen whole.)
///
/// In:  `mine`, f32 [my_slice(…).size()]: this rank's elements; may be empty.
/// Out: the sum over the elements of all ranks. Square and add in double: a float's square needs 48 bits.
/// May allocate one number and send one number: the vector itself stays where it is.
///
/// Useful:
///   const float* x = mine.data<float>();                  // mine.numel() of them
///   Tensor t(rank.memory, Category::communication, DType::f64, {1});   t.set(0, 3.5);   t.get(0)
///   Work work = rank.world().all_reduce(t);               // posts: t becomes the sum over the ranks …
///   work.wait();                                          // … and may be read now. Every rank calls both.
inline double sum_of_squares(Rank& rank, const Tensor& mine) {
  // YOUR CODE BEGIN sum_of_squares
  (void)rank, (void)mine;
  LAB_TODO("add this rank's squares, then the sums of all ranks");
  // YOUR CODE END
}

}  // namespace shardlings
