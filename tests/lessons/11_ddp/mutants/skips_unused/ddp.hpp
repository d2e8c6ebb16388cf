// Leaves out the units that had no gradient in this step: why send zeros?
// MUTANT BEGIN end_step
    for (std::size_t u = 0; u < flat_.flats.size(); ++u) {
      if (sum_squares(flat_.grad(u), flat_.flats[u].segments) > 0) dp_.all_reduce(flat_.grad(u)).wait();
    }
    return Single::end_step(rate);
// MUTANT END
